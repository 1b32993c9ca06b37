"""Ten rounds with librdkafka and a few with Java's clients; `make crash` plays hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.exactly_once.crash import BROKER_SETTINGS, Round
from compat_tests.exactly_once.workers import WorkerProgram, program
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("exactly-once")


@pytest.fixture(scope="module")
def broker(against: Any) -> Iterator[BrokerProcess]:
    """One for all rounds: what a crash leaves in it, the rounds that follow start from."""
    if against:
        pytest.skip("kills a broker of its own")
    with BrokerProcess(BROKER_SETTINGS) as process:
        yield process


@pytest.fixture(scope="module")
def worker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> WorkerProgram:
    return program(request.param, tmp_path_factory.mktemp("worker"))


@pytest.mark.parametrize(
    ("worker", "seed"),
    [
        *(("librdkafka", seed) for seed in range(10)),
        *(("java-classic", seed) for seed in range(10, 13)),
        *(("java-consumer", seed) for seed in range(13, 16)),
    ],
    indirect=["worker"],
)
def test_each_record_arrives_once_and_in_order(
    broker: BrokerProcess, tmp_path: Path, worker: WorkerProgram, seed: int
) -> None:
    Round(broker, seed, worker, tmp_path).run()
