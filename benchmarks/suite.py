"""All steps, and which of them are of the quick form."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from benchmarks import compaction, connections, coordinators, growth, latency, readers, requests
from benchmarks.loads import DEFAULT_BATCH, Produce
from benchmarks.spark import SparkSteps
from benchmarks.steps import Steady, Step, fresh, produce_and_consume, start_and_idle

_RECORDS = {100: 1_000_000, 1024: 300_000}
"""By their size in bytes."""
_STEADY_RECORDS = {100: (1_500_000, 2_500_000), 1024: (300_000, 500_000)}
"""To steady brokers: those of the warm-up to this kind of load, and those that count."""
_LARGE = 65536


def steps(steady: Steady, spark: SparkSteps, scale: float, *, full: bool, latency_s: float) -> list[Step]:
    """`scale` multiplies the records of produce loads; `full` says how large the data are of steps that have two
    sizes, `latency_s` how long a steady latency is watched."""
    found = [Step("start", start_and_idle, quick=True)]
    for load, quick in _loads(scale):
        warm_up, records = (int(count * scale) for count in _STEADY_RECORDS[load.size])
        found.append(Step(f"fresh: {load.name}", fresh(produce_and_consume(load)), quick=quick))
        warm = produce_and_consume(replace(load, records=records), steady.producer.run, warm_up)
        found.append(Step(f"steady: {load.name}", steady.step(warm), quick=quick))
    return [
        *found,
        *readers.steps(steady, full=full),
        *latency.steps(steady, latency_s),
        *requests.steps(steady),
        *connections.steps(),
        *coordinators.steps(),
        *growth.steps(full=full),
        *compaction.steps(full=full),
        *spark.steps(),
    ]


def _loads(scale: float) -> list[tuple[Produce, bool]]:
    """And whether they are of the quick form."""

    def load(size: int, partitions: int, acks: str, **rest: object) -> Produce:
        return Produce(int(_RECORDS[size] * scale), size, partitions, acks, **rest)  # type: ignore[arg-type]

    shapes = product((100, 1024), (1, 6, 100), ("0", "1", "all"), (DEFAULT_BATCH, _LARGE))
    quick = {(100, 1, "1", DEFAULT_BATCH), (1024, 6, "all", DEFAULT_BATCH)}
    plain = [
        (load(size, partitions, acks, batch_size=batch_size), (size, partitions, acks, batch_size) in quick)
        for size, partitions, acks, batch_size in shapes
    ]
    compressed = [load(1024, 6, "1", compression=name) for name in ("gzip", "snappy", "lz4", "zstd")]
    transactions = [load(size, 6, "all", transactional=True) for size in _RECORDS]
    limited = [load(size, 6, "1", limited=True) for size in _RECORDS]
    return [*plain, *((each, False) for each in (*compressed, *transactions, *limited))]
