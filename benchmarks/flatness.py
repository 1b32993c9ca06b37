"""Whether a request costs more where there are many partitions: two brokers of a kind, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import trio

from benchmarks.creation import create
from benchmarks.process import cpu_seconds, peak_mb
from benchmarks.steps import Figures, StartBroker, cost, started
from benchmarks.watcher import RECORD_SIZE, producing

_TOPIC = "asked"
_SETTLE_S = 3.0
_TURNS = 6
_TURN_S = 5.0
_RATE = 200
"""Requests of one record a second."""


def beside(partitions: int) -> Callable[[StartBroker], Figures]:
    """Requests of one record to a topic of one partition: of a broker with no other, and of one with `partitions`."""

    def measure(make: StartBroker) -> Figures:
        with started(make) as one, started(make) as many:
            for broker in (one, many):
                trio.run(create, broker.bootstrap, [_TOPIC], 1)
            trio.run(create, many.bootstrap, ["others"], partitions)
            time.sleep(_SETTLE_S)
            first, second = _Asked(one), _Asked(many)
            for turn in range(_TURNS):
                for asked in (first, second) if turn % 2 == 0 else (second, first):
                    asked.ask()
            named = ((first, "1 partition"), (second, f"{partitions:,} partitions"))
            figures = {name: value for asked, state in named for name, value in asked.figures(state).items()}
            figures["MB at most"] = peak_mb(many.pid)
            return figures | cost(first.spent + second.spent, first.count + second.count, RECORD_SIZE)

    return measure


class _Asked:
    """What the requests to a broker took, its turns together."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker
        self._p50s: list[float] = []
        self._p99s: list[float] = []
        self.count = 0
        self.spent = 0.0
        """CPU seconds of the broker."""

    def ask(self) -> None:
        broker = self._broker
        before = cpu_seconds(broker.pid)
        with producing(broker.bootstrap, _TOPIC, _RATE) as acks:
            time.sleep(_TURN_S)
        self.spent += cpu_seconds(broker.pid) - before
        self.count += acks.count
        self._p50s.append(acks.p50)
        self._p99s.append(acks.p99)

    def figures(self, state: str) -> Figures:
        """The medians of the turns' percentiles."""
        return {
            f"CPU ms per request: {state}": self.spent * 1000 / self.count,
            f"ms to an acknowledgement, p50: {state}": median(self._p50s),
            f"ms to an acknowledgement, p99: {state}": median(self._p99s),
        }
