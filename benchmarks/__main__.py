"""`python -m benchmarks`: measures kwire beside Apache Kafka, in pairs, and prints the table."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.latency import FULL_S, QUICK_S
from benchmarks.machine import in_memory
from benchmarks.pairs import run, version_of
from benchmarks.plots import draw
from benchmarks.report import markdown, read, write
from benchmarks.spark import SparkSteps
from benchmarks.steps import Steady
from benchmarks.suite import steps
from jvm.apache_kafka import class_path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="pairs a step (default 5)")
    parser.add_argument("--warm-up", type=int, default=20_000_000, help="records before the steady steps")
    parser.add_argument("--only", action="append", help="steps whose name contains this; may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the records of each load")
    parser.add_argument("--full", action="store_true", help="all steps, with more data and longer")
    parser.add_argument(
        "--latency-seconds",
        type=float,
        help=f"seconds of a steady latency (default {QUICK_S:.0f}; with --full {FULL_S:.0f}: five are an hour)",
    )
    parser.add_argument("--output", type=Path, help="where results are written (default benchmarks/results)")
    parser.add_argument("--resume", action="store_true", help="keep the steps of an earlier run, measure the others")
    parser.add_argument(
        "--against", type=Path, help="a checkout of another version, beside which kwire is measured; nothing is written"
    )
    options = parser.parse_args(arguments)
    if options.against is not None and (options.resume or options.output is not None):
        parser.error("--against writes nothing: --output and --resume are not for it")
    output = options.output or Path("benchmarks/results")
    try:
        other = None if options.against is None else version_of(options.against)
    except ValueError as error:
        parser.error(f"--against: {error}")
    latency_s = options.latency_seconds
    if latency_s is None:
        latency_s = FULL_S if options.full else QUICK_S
    elif not latency_s > 0:
        parser.error(f"--latency-seconds: {latency_s:g} is not more than 0")
    measured_with = {
        "full": options.full,
        "pairs": options.pairs,
        "warm_up": options.warm_up,
        "scale": options.scale,
        "latency_seconds": latency_s,
    }
    try:
        results = read(output, measured_with) if options.resume else []
    except ValueError as error:
        parser.error(f"--resume: {error}")
    if in_memory(scratch := Path(tempfile.gettempdir())):
        parser.error(f"{scratch}, where the brokers keep their data, is in memory: set TMPDIR to a folder on a disk")
    class_path()  # resolves the jars before anything is measured
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # for thousands of connections, the brokers' too
    measured = {result.step for result in results}
    with closing(Steady(options.warm_up)) as steady, closing(SparkSteps(options.scale)) as spark:
        known = steps(steady, spark, options.scale, full=options.full, latency_s=latency_s)
        for name in options.only or ():
            if not any(name in step.name for step in known):
                parser.error(
                    f"--only: no step's name contains {name!r}; there are\n" + "\n".join(s.name for s in known)
                )
        for step in known:
            asked = any(name in step.name for name in options.only) if options.only else options.full or step.quick
            if asked and step.name not in measured:
                results.append(run(step, options.pairs, other))
                if other is None:
                    write(results, output, measured_with)  # what was measured is kept if a later step fails
    if other is None:
        draw(results, output)
    print(markdown(results, "Apache Kafka" if other is None else f"kwire in {options.against}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
