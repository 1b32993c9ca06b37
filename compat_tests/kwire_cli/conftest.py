from __future__ import annotations

from typing import Any

import pytest

from compat_tests.kwire_cli.cli import Cli


@pytest.fixture
def cli(kwire_broker: Any) -> Cli:
    return Cli(kwire_broker.bootstrap)
