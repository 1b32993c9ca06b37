"""Ten rounds of kills under producers of three kinds; `make crash` plays hundreds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.durability.rounds import SETTINGS, WriteRound
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("write-rounds")


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """One for all rounds: what a crash leaves in it, the rounds that follow start from."""
    with BrokerProcess(SETTINGS) as process:
        yield process


@pytest.mark.parametrize("seed", range(10))
def test_what_was_acknowledged_is_there_once_and_in_order(broker: BrokerProcess, seed: int) -> None:
    WriteRound(broker, seed).run()
