"""How near kwire is to what a librdkafka consumer reads at most: in turn from kwire, and from a server that has nothing
to do but to send the same batches (`bare_consuming.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import median

from benchmarks.bare_process import bare_server
from benchmarks.loads import Produce, consume, new_topic
from benchmarks.process import cpu_seconds
from benchmarks.readiness import make_ready
from kwire.testing.process import BrokerProcess

_RECORDS = (100, 1_000_000), (100, 4_000_000), (1024, 800_000)
"""Their size, and as many as fresh brokers are measured with, and as steady ones (`suite.py`), in one segment of each
partition."""
LOADS = [
    *(Produce(number, size, partitions, "1") for size, number in _RECORDS for partitions in (1, 6, 100)),
    *(Produce(number, size, partitions, "1", 65536) for size, number in _RECORDS for partitions in (1, 6, 100)),
    Produce(800_000, 1024, 6, "1", compression="gzip"),
    Produce(1_000_000, 100, 6, "all", transactional=True),
]
"""By `acks` alone what is stored does not differ but in what an idempotent producer says of itself."""


@dataclass(frozen=True, slots=True)
class Read:
    """Records a second, and the server's CPU seconds for a million."""

    rate: float
    cpu_s: float


def rows(times: int) -> Iterator[str]:
    """Of a Markdown table, with its head: of each load so many measurements, one that does not count before them."""
    yield "| one librdkafka consumer | kwire: records/s, CPU s per M | Trio alone | kwire / Trio: records/s, CPU |"
    yield "|---|---:|---:|---:|"
    for load in LOADS:
        ours, bare = zip(*measure(load, times), strict=True)
        pairs = list(zip(ours, bare, strict=True))
        rate, cpu = median(a.rate / b.rate for a, b in pairs), median(a.cpu_s / b.cpu_s for a, b in pairs)
        yield f"| {load.records:,} of {load.name} | {_medians(ours)} | {_medians(bare)} | {rate:.2f}, {cpu:.2f} |"


def _medians(side: Sequence[Read]) -> str:
    return f"{median(read.rate for read in side):,.0f}, {median(read.cpu_s for read in side):.3f}"


def measure(load: Produce, times: int) -> list[tuple[Read, Read]]:
    """Of kwire and of the bare server, the order swapped from one to the next."""
    with closing(BrokerProcess()) as broker:
        broker.start()
        topic = new_topic(broker.bootstrap, load.partitions)
        load.run(broker.bootstrap, topic)
        make_ready()
        told = [str(broker.data_dir), topic, str(load.partitions)]
        with bare_server("benchmarks.bare_consuming", *told) as (bootstrap, pid):
            found = []
            for turn in range(times + 1):
                sides = [(broker.bootstrap, broker.pid), (bootstrap, pid)]
                order = sides if turn % 2 else sides[::-1]
                read = {side: _read(load, topic, *side) for side in order}
                found.append((read[sides[0]], read[sides[1]]))
            return found[1:]


def _read(load: Produce, topic: str, bootstrap: str, pid: int) -> Read:
    before = cpu_seconds(pid)
    rate = consume(bootstrap, topic, load.partitions, load.records)
    return Read(rate, (cpu_seconds(pid) - before) / load.records * 1e6)
