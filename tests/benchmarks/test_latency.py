"""How much is sent beside what is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import latency
from benchmarks.loads import Produce, Sent
from benchmarks.steps import Figures, OnBroker, StartBroker


class Broker:
    bootstrap = "127.0.0.1:9"


def test_half_a_load_is_half_of_what_the_other_takes_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "new_topic", lambda bootstrap, partitions: f"{partitions} at {bootstrap}")
    capacity = Produce(1000, 100, 6, "1")
    sent: list[object] = []

    def run(load: Produce, bootstrap: str, topic: str) -> Sent:
        sent.append((load, bootstrap, topic))
        return Sent(1000.0 + 2001.0 * (len(sent) - 1), 1, 2, 3)

    def on_broker(measure: OnBroker) -> Callable[[StartBroker], Figures]:
        return lambda make: measure(make())

    half = latency.HalfLoad(on_broker, capacity, run, runs=2)
    make: Any = Broker
    half.find(make)
    assert half.rate == 1500
    assert sent == [(capacity, Broker.bootstrap, f"6 at {Broker.bootstrap}")] * 2
