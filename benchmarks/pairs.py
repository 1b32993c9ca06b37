"""A step measured on both brokers, in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from benchmarks.disturbance import undisturbed
from benchmarks.report import Pairs
from benchmarks.steps import Figures, Step
from jvm.apache_kafka import ApacheKafka
from kwire.testing.process import BrokerProcess


def run(step: Step, pairs: int) -> Pairs:
    """The order is swapped from pair to pair."""
    result = Pairs(step.name)
    for number in range(pairs):
        sides: list[tuple[list[Figures], Callable[[], Any]]] = [
            (result.kwire, make_kwire),
            (result.apache, make_apache_kafka),
        ]
        for figures, make in sides if number % 2 == 0 else reversed(sides):
            found, disturbed = undisturbed(lambda make=make: step.measure(make))  # type: ignore[misc]
            figures.append(found)
            result.disturbed += disturbed
        print(f"{step.name}: pair {number + 1} of {pairs}", file=sys.stderr, flush=True)
    return result


def make_kwire() -> BrokerProcess:
    return BrokerProcess()


def make_apache_kafka() -> ApacheKafka:
    peer = ApacheKafka()
    peer.format()
    return peer
