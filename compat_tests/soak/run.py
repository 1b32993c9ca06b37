"""Records at a steady rate, which a Spark stream copies to another topic while both topics lose their oldest ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.process import cpu_seconds, resident_mb
from benchmarks.watcher import producing
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs.tests.jobs import JobProcess, wait_for

PARTITIONS = 3
MEGABYTE = 1 << 20
BROKER = {"log.retention.check.interval.ms": 1000}
TOPIC = {"segment.bytes": MEGABYTE, "retention.bytes": 10 * MEGABYTE, "file.delete.delay.ms": 0}
"""Enough for minutes; so the broker rolls and deletes segments all the while."""
SOURCE, TARGET = "soak", "soak-copy"
LAG_S = 30
"""The most records that may wait to be copied, in seconds of their rate."""
GROWTH_MB = 8.0
"""The most that a broker may be larger in the last fifth of a run than in the second one, on an average."""
TIMEOUT = 30.0


@dataclass(frozen=True)
class Sample:
    """How it stands at a moment."""

    seconds: float
    """Since the run began."""
    produced: int
    copied: int
    resident_mb: float
    """Of the broker."""
    cpu_s: float
    """Of the broker, since it started."""

    @property
    def lag(self) -> int:
        """Records that wait to be copied."""
        return self.produced - self.copied


@dataclass(frozen=True)
class Soaked:
    """A run that is over: all records were copied."""

    rate: float
    samples: Sequence[Sample]
    produce_p50_ms: float
    produce_p99_ms: float

    @property
    def longest_lag_s(self) -> float:
        return max(sample.lag for sample in self.samples) / self.rate

    @property
    def growth_mb(self) -> float:
        """From the second fifth of the run to the last one."""
        fifth = len(self.samples) // 5
        return _mean(self.samples[-fifth:]) - _mean(self.samples[fifth : 2 * fifth])

    def __str__(self) -> str:
        first, last = self.samples[0], self.samples[-1]
        records = last.produced - first.produced
        lags = sorted(sample.lag / self.rate for sample in self.samples)
        return "\n".join(
            [
                f"{records:,} records in {last.seconds - first.seconds:.0f} s, all copied",
                f"lag: median {lags[len(lags) // 2]:.1f} s, at most {lags[-1]:.1f} s",
                f"a produce: p50 {self.produce_p50_ms:.2f} ms, p99 {self.produce_p99_ms:.2f} ms",
                f"the broker: {first.resident_mb:.1f} MB at the beginning, {last.resident_mb:.1f} MB at the end, "
                f"{self.growth_mb:+.1f} MB from the second fifth to the last; "
                f"{(last.cpu_s - first.cpu_s) / (last.seconds - first.seconds):.0%} of a core",
            ]
        )

    def check(self) -> None:
        """Raises AssertionError where lag or memory were not held."""
        assert self.longest_lag_s <= LAG_S, str(self)
        assert self.growth_mb <= GROWTH_MB, str(self)


def soak(folder: Path, seconds: float, rate: float) -> Soaked:
    """Runs for so long, with so many records a second. The first one is copied before the time begins."""
    with BrokerProcess(BROKER, data_dir=folder / "data") as broker, closing(_consumer(broker.bootstrap)) as consumer:
        for topic in (SOURCE, TARGET):
            create_topic(broker.bootstrap, topic, PARTITIONS, TOPIC)
        arguments = [SOURCE, TARGET, "-b", broker.bootstrap, "--checkpoint", "state", "--follow"]
        began = time.monotonic()

        def sample() -> Sample:
            copied, produced = (sum(_ends(consumer, topic)) for topic in (TARGET, SOURCE))
            used = resident_mb(broker.pid), cpu_seconds(broker.pid)
            return Sample(time.monotonic() - began, produced, copied, *used)

        with JobProcess("mirror", *arguments, folder=folder) as job:
            with producing(broker.bootstrap, SOURCE, 1):
                job.wait_until(lambda: sample().copied > 0)
            began = time.monotonic()
            samples = [sample()]
            with producing(broker.bootstrap, SOURCE, rate) as produced:
                while samples[-1].seconds < seconds:
                    time.sleep(max(0.0, len(samples) - samples[-1].seconds))
                    assert job.process.poll() is None, job.said[-5000:]
                    samples.append(sample())
            wait_for(lambda: _ends(consumer, TARGET) == _ends(consumer, SOURCE), job)
    return Soaked(rate, samples, produced.p50, produced.p99)


def _consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "soak", "enable.auto.commit": False})


def _ends(consumer: Consumer, topic: str) -> list[int]:
    """Of each partition: the offset after the last record, which is how many were ever written."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return [consumer.get_watermark_offsets(place, TIMEOUT)[1] for place in places]


def _mean(samples: Sequence[Sample]) -> float:
    return sum(sample.resident_mb for sample in samples) / len(samples)
