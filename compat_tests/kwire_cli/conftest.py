from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.kwire_cli.cli import Cli


@pytest.fixture
def cli(kwire_broker: Any) -> Iterator[Cli]:
    # Commands inherit it that Ctrl-C is ignored where the tests run in the background of a script.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Cli(kwire_broker.bootstrap)
    signal.signal(signal.SIGINT, before)
