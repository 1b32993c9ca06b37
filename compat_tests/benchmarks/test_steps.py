"""The steps of the benchmarks run, with loads too small to say anything of speed."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from benchmarks import limits
from benchmarks.first_produce import produce_first
from benchmarks.loads import Produce
from benchmarks.pairs import make_kwire
from benchmarks.steps import Steady, fresh
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Bounds

pytestmark = pytest.mark.xdist_group("java")

FIGURES = {
    "produced records/s",
    "CPU s per M produced",
    "CPU s per GB produced",
    "consumed records/s",
    "CPU s per M consumed",
    "CPU s per GB consumed",
    "MB at most",
}


def test_the_first_produce_is_one_record(kwire_broker: Any, new_name: Any) -> None:
    topic = new_name()
    produce_first(kwire_broker.host, kwire_broker.port, topic, time.monotonic() + TIMEOUT)
    assert ConfluentDriver(kwire_broker.bootstrap).bounds(topic) == Bounds(0, 1)


def test_nobody_to_acknowledge_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TimeoutError):
        produce_first("127.0.0.1", port, "topic", time.monotonic() + 0.05)


def test_what_trio_alone_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bare server takes the frames, of one read or several, for those of a broker that accepts them."""
    monkeypatch.setattr(limits, "_WARM_UP_S", 0.1)
    monkeypatch.setattr(limits, "_MEASURED_S", 0.3)
    for cost in limits.measure(limits.Load(2, 200, 1_000)):
        assert cost.rate > 0


def test_a_fresh_broker() -> None:
    figures = fresh(Produce(2000, 100, 6, "all"))(make_kwire)
    assert set(figures) == FIGURES
    assert figures["produced records/s"] > 0
    assert figures["consumed records/s"] > 0


def test_a_broker_that_lives_on() -> None:
    steady = Steady(2000)
    made = []

    def make() -> Any:
        made.append(make_kwire())
        return made[-1]

    try:
        for records in (1000, 1001):
            assert set(steady.step(Produce(records, 1024, 1, "1"))(make)) == FIGURES
        (broker,) = made
        assert broker.running
    finally:
        steady.close()
    assert not broker.running
