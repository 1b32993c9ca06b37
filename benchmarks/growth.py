"""What grows with what is kept, or should not: thousands of partitions on one broker, a log of many gigabytes."""

from __future__ import annotations

from benchmarks.flatness import beside
from benchmarks.large_log import large_log
from benchmarks.partitions import partitions
from benchmarks.steps import Step


def steps(*, full: bool) -> list[Step]:
    """Unless `full`, without what is largest."""
    count, gigabytes = (10_000, 20.0) if full else (1_000, 2.0)
    counts = [each for each in (1, 100, 1_000, 10_000) if each <= count]
    return [
        *(Step(f"growth: 1 topic, partitions: {each:,}", partitions(1, each)) for each in counts),
        Step(f"growth: {count // 100} topics of 100 partitions", partitions(count // 100, 100)),
        Step(f"growth: a request beside 1 partition and beside {count:,}, in turn", beside(count)),
        Step(f"growth: a log of {gigabytes:g} GB", large_log(gigabytes)),
    ]
