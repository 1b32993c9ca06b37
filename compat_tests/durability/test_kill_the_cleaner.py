"""kill -9 of the process in which the log cleaner works: the cleaning is done again, and ends with its broker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.process import family
from compat_tests.driver import TIMEOUT
from kwire.testing.process import BrokerProcess

KEYS = 20
RECORDS = 4000
CONFIGS = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"}
SETTINGS = {
    "log.cleaner.backoff.ms": 50,
    # A cleaning takes some seconds.
    "log.cleaner.io.max.bytes.per.second": 2_000_000,
}


def test_the_cleaner_is_killed(tmp_path: Path) -> None:
    with BrokerProcess(SETTINGS, data_dir=tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert family(broker.pid) == [broker.pid]
        admin.create_topics([NewTopic("topic", 1, 1, config=CONFIGS)])["topic"].result(TIMEOUT)
        _write(broker)
        first = _worker_of(broker)
        os.kill(first, signal.SIGKILL)
        second = _worker_of(broker, besides=first)
        assert "cleaning of topic-0 given up, it will be tried again" in broker.log_tail()
        broker.kill()
        _until(lambda: not Path(f"/proc/{second}").exists())
        broker.config["log.cleaner.io.max.bytes.per.second"] = 100_000_000
        broker.start()
        _until(lambda: any(line.startswith("topic 0 ") for line in _checkpoint(broker)))
        (first_segment, *_) = sorted((broker.data_dir / "topic-0").glob("*.log"))
        assert first_segment.stat().st_size < 10_000


def _write(broker: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce("topic", bytes(1000), b"%d" % (number % KEYS))
    assert not producer.flush(TIMEOUT)


def _worker_of(broker: BrokerProcess, besides: int = 0) -> int:
    found: list[int] = []

    def look() -> bool:
        found[:] = [pid for pid in family(broker.pid) if pid not in (broker.pid, besides)]
        return bool(found)

    _until(look)
    return found[0]


def _checkpoint(broker: BrokerProcess) -> list[str]:
    path = broker.data_dir / "cleaner-offset-checkpoint"
    return path.read_text().splitlines() if path.exists() else []


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
