"""`python -m benchmarks.limits`: how near kwire is to what can be done at most with the same frames.

Producers of one batch a request, each of which waits for its acknowledgement, and records one by one to a reader that
waits; in turn on kwire and on servers that read the frames and answer them, and do nothing else: by Trio's own means,
and in kwire's crowd (`bare.py`).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds
from benchmarks.raw import Producers
from benchmarks.raw_passing import Passing
from kwire.testing.process import BrokerProcess

_TOPIC = "limits"
_WARM_UP_S = 2.0
_MEASURED_S = 5.0


@dataclass(frozen=True, slots=True)
class Load:
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
class Records:
    """Of 100 bytes, to a reader that waits for each."""

    rate: int

    @property
    def name(self) -> str:
        return f"{self.rate:,} records/s to a waiting fetch"

    def begin(self, bootstrap: str) -> Passing:
        return Passing(bootstrap, _TOPIC, self.rate)


LOADS = [Load(1, 1, 100), Load(50, 1, 100), Load(500, 1, 100), Load(1, 16, 1_000), Load(50, 16, 1_000), Records(1_000)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests a second, and the server's CPU seconds for each."""

    rate: float
    cpu_s: float


def measure(load: Load | Records) -> tuple[Cost, Cost, Cost]:
    """Of kwire, and right after it of the crowd alone and of Trio alone."""
    with closing(BrokerProcess()) as broker:
        broker.start()
        create_topic(broker.bootstrap, _TOPIC, 1)
        with closing(load.begin(broker.bootstrap)) as clients:
            ours, answers = _cost(clients, broker.pid), clients.answers
    with _bare("crowd", answers) as (bootstrap, pid), closing(load.begin(bootstrap)) as clients:
        crowd = _cost(clients, pid)
    with _bare("trio", answers) as (bootstrap, pid), closing(load.begin(bootstrap)) as clients:
        return ours, crowd, _cost(clients, pid)


def _cost(clients: Producers | Passing, pid: int) -> Cost:
    clients.run(_WARM_UP_S)
    before = cpu_seconds(pid)
    requests = len(clients.run(_MEASURED_S))
    return Cost(requests / _MEASURED_S, (cpu_seconds(pid) - before) / requests)


@contextmanager
def _bare(means: str, answers: list[bytes]) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    command = [sys.executable, "-m", "benchmarks.bare", means, *(answer.hex() for answer in answers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline())}", process.pid
        finally:
            process.kill()


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
    return 0


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
