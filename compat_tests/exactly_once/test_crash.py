"""Ten rounds; `make crash` plays hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.exactly_once.crash import BROKER_SETTINGS, Round
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("exactly-once")


@pytest.fixture(scope="module")
def broker(against: Any) -> Iterator[BrokerProcess]:
    """One for all rounds: what a crash leaves in it, the rounds that follow start from."""
    if against:
        pytest.skip("kills a broker of its own")
    with BrokerProcess(BROKER_SETTINGS) as process:
        yield process


@pytest.mark.parametrize("seed", range(10))
def test_each_record_arrives_once_and_in_order(broker: BrokerProcess, tmp_path: Path, seed: int) -> None:
    Round(broker, seed, tmp_path).run()
