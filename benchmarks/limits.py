"""`python -m benchmarks.limits`: how near kwire is to what can be done at most with the same frames.

Producers of one batch a request, each of which waits for its acknowledgement, records one by one to a reader that
waits, and fetches of 50 MiB; in turn on kwire and on servers that read the frames and answer them, and do nothing else:
by Trio's own means, and in kwire's crowd (`bare.py`, `bare_reading.py`). After these, consumers (`consumer_limits.py`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from benchmarks import consumer_limits
from benchmarks.bare_process import bare_server
from benchmarks.loads import Produce, create_topic
from benchmarks.process import cpu_seconds
from benchmarks.raw import Producers
from benchmarks.raw_passing import Passing
from benchmarks.raw_reading import ANSWER_BYTES, PARTITION_BYTES, Reading
from kwire.testing.process import BrokerProcess

_TOPIC = "limits"
_WARM_UP_S = 2.0
_MEASURED_S = 5.0


class Clients(Protocol):
    def run(self, seconds: float) -> list[float]:
        """How long (s) each request took that was begun within that time."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Clients)


class Load(Protocol[C]):
    """What is measured."""

    @property
    def name(self) -> str: ...

    def prepare(self, bootstrap: str) -> None:
        """Makes at a broker what the clients ask for."""

    def begin(self, bootstrap: str) -> C: ...

    def bare(self, clients: C) -> list[str]:
        """The module that does the same and nothing else, and what it is told besides by which means: what the broker
        answered to the clients, or how much that was."""


class _OfOnePartition:
    """What a bare server answers as the broker did."""

    __slots__ = ()

    def prepare(self, bootstrap: str) -> None:
        create_topic(bootstrap, _TOPIC, 1)

    def bare(self, clients: Producers | Passing) -> list[str]:
        return ["benchmarks.bare", *(answer.hex() for answer in clients.answers)]


@dataclass(frozen=True, slots=True)
class Requests(_OfOnePartition):
    """So many connections, each with one batch of `records` records of `size` bytes under way."""

    connections: int
    records: int
    size: int

    @property
    def name(self) -> str:
        plural = "" if self.connections == 1 else "s"
        return f"{self.connections} connection{plural}, {self.records * self.size:,} B a request"

    def begin(self, bootstrap: str) -> Producers:
        return Producers(bootstrap, _TOPIC, self.connections, records=self.records, size=self.size)


@dataclass(frozen=True, slots=True)
class Records(_OfOnePartition):
    """Of 100 bytes, to a reader that waits for each."""

    rate: int

    @property
    def name(self) -> str:
        return f"{self.rate:,} records/s to a waiting fetch"

    def begin(self, bootstrap: str) -> Passing:
        return Passing(bootstrap, _TOPIC, self.rate)


@dataclass(frozen=True, slots=True)
class Fetches:
    """Of 50 MiB, as much as a consumer takes at once, of so many partitions with 2 MB each."""

    partitions: int

    @property
    def name(self) -> str:
        return f"fetches of {ANSWER_BYTES >> 20} MiB from {self.partitions} partitions"

    def prepare(self, bootstrap: str) -> None:
        create_topic(bootstrap, _TOPIC, self.partitions)
        Produce(2_000 * self.partitions, 1_024, self.partitions, "1").run(bootstrap, _TOPIC)
        with closing(self.begin(bootstrap)) as reading:
            reading.check()

    def begin(self, bootstrap: str) -> Reading:
        return Reading(bootstrap, _TOPIC, self.partitions)

    def bare(self, clients: Reading) -> list[str]:
        return ["benchmarks.bare_reading", str(ANSWER_BYTES // PARTITION_BYTES)]


LOADS: list[Load[Any]] = [
    Requests(1, 1, 100),
    Requests(50, 1, 100),
    Requests(500, 1, 100),
    Requests(1, 16, 1_000),
    Requests(50, 16, 1_000),
    Records(1_000),
    Fetches(100),
]


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests a second, and the server's CPU seconds for each."""

    rate: float
    cpu_s: float


def measure(load: Load[Any]) -> tuple[Cost, Cost, Cost]:
    """Of kwire, and right after it of the crowd alone and of Trio alone."""
    with closing(BrokerProcess()) as broker:
        broker.start()
        load.prepare(broker.bootstrap)
        with closing(load.begin(broker.bootstrap)) as clients:
            ours, (module, *told) = _cost(clients, broker.pid), load.bare(clients)
    with bare_server(module, "crowd", *told) as (bootstrap, pid), closing(load.begin(bootstrap)) as clients:
        crowd = _cost(clients, pid)
    with bare_server(module, "trio", *told) as (bootstrap, pid), closing(load.begin(bootstrap)) as clients:
        return ours, crowd, _cost(clients, pid)


def _cost(clients: Clients, pid: int) -> Cost:
    clients.run(_WARM_UP_S)
    before, began = cpu_seconds(pid), time.monotonic()
    requests = len(clients.run(_MEASURED_S))
    lasted = time.monotonic() - began  # until the last of them was answered
    return Cost(requests / lasted, (cpu_seconds(pid) - before) / requests)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="measurements of each (default 5)")
    pairs = parser.parse_args(arguments).pairs
    print("| load | kwire: requests/s, CPU µs each | its crowd alone | Trio alone | kwire / Trio: requests/s, CPU |")
    print("|---|---:|---:|---:|---:|")
    for load in LOADS:
        found = [measure(load) for _ in range(pairs)]
        sides = [
            f"{_median(cost.rate for cost in side):,.0f}, {_median(cost.cpu_s for cost in side) * 1e6:.0f}"
            for side in zip(*found, strict=True)
        ]
        rate, cpu = (_median(a.rate / b.rate for a, _, b in found), _median(a.cpu_s / b.cpu_s for a, _, b in found))
        print(f"| {load.name} | {' | '.join(sides)} | {rate:.2f}, {cpu:.2f} |", flush=True)
    print()
    for row in consumer_limits.rows(pairs):
        print(row, flush=True)
    return 0


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
