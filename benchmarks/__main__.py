"""`python -m benchmarks`: measures kwire beside Apache Kafka, in pairs, and prints the table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import compaction, coordinators, flushed, growth
from benchmarks.loads import Produce
from benchmarks.process import machine_cpu_seconds
from benchmarks.report import Pairs, markdown, write
from benchmarks.spark import SparkSteps
from benchmarks.steps import Figures, Steady, Step, fresh, start_and_idle
from jvm.apache_kafka import ApacheKafka, class_path
from kwire.testing.process import BrokerProcess

_QUIET_SHARE = 0.15
"""More of the machine than this used by others just before a pair counts as a disturbance."""
_TRIES = 3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="pairs a step (default 3)")
    parser.add_argument("--warm-up", type=int, default=10_000_000, help="records before the steady steps")
    parser.add_argument("--only", default="", help="only the steps whose name contains this")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the records of each load")
    parser.add_argument(
        "--full", action="store_true", help="growth and compaction: as in the README, not a tenth of it"
    )
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="where results are written")
    options = parser.parse_args(arguments)
    class_path()  # resolves the jars before anything is measured
    results: list[Pairs] = []
    with closing(Steady(options.warm_up)) as steady, closing(SparkSteps(options.scale)) as spark:
        for step in [*steps(steady, options.scale, full=options.full), *spark.steps()]:
            if options.only in step.name:
                results.append(run(step, options.pairs))
                write(results, options.output)  # what was measured is kept if a later step fails
    print(markdown(results))
    return 0


def steps(steady: Steady, scale: float, *, full: bool = False) -> list[Step]:
    loads = [
        Produce(int(records * scale), size, partitions, acks)
        for size, records in ((100, 1_000_000), (1024, 300_000))
        for partitions in (1, 6)
        for acks in ("1", "all")
    ]
    return [
        Step("start", start_and_idle),
        *(Step(f"fresh: {load.name}", fresh(load)) for load in loads),
        *(Step(f"steady: {load.name}", steady.step(load)) for load in loads),
        *flushed.steps(),
        *coordinators.steps(),
        *growth.steps(full=full),
        *compaction.steps(full=full),
    ]


def run(step: Step, pairs: int) -> Pairs:
    """Measures the two in turn, the order swapped from pair to pair."""
    result = Pairs(step.name)
    for number in range(pairs):
        sides: list[tuple[list[Figures], Callable[[], Any]]] = [
            (result.kwire, make_kwire),
            (result.apache, make_apache_kafka),
        ]
        for figures, make in sides if number % 2 == 0 else reversed(sides):
            result.disturbed += not _wait_for_quiet()
            figures.append(step.measure(make))
        print(f"{step.name}: pair {number + 1} of {pairs}", file=sys.stderr, flush=True)
    return result


def make_kwire() -> BrokerProcess:
    return BrokerProcess()


def make_apache_kafka() -> ApacheKafka:
    peer = ApacheKafka()
    peer.format()
    return peer


def _wait_for_quiet() -> bool:
    """Whether the machine was idle enough for a second, within three tries."""
    for _ in range(_TRIES):
        before = machine_cpu_seconds()
        time.sleep(1.0)
        if machine_cpu_seconds() - before < _QUIET_SHARE:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
