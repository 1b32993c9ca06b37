"""`kwire log verify` beside a broker that writes, compacts and removes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.driver import TIMEOUT
from kwire.testing.factories import BrokerFactory

SEGMENT = {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "100"}
TOPICS = {
    "removed": {**SEGMENT, "retention.bytes": "2000000"},
    "compacted": {**SEGMENT, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}


def verify(folder: Path) -> str:
    command = [sys.executable, "-m", "kwire", "log", "verify", "--deep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def writing(bootstrap: str) -> Iterator[None]:
    """Transactions, every fourth aborted, until it ends."""
    over = threading.Event()
    failures: list[Exception] = []

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "verified", "log_level": 0})
        producer.init_transactions(TIMEOUT)
        number = 0
        while not over.is_set():
            producer.begin_transaction()
            for each in range(100):
                producer.produce("removed", b"x" * 1000)
                producer.produce("compacted", b"y" * 1000, key=f"{each % 20}")
            end = producer.abort_transaction if number % 4 == 3 else producer.commit_transaction
            end(TIMEOUT)
            number += 1

    def run() -> None:
        try:
            write()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(TIMEOUT)
    assert not failures


def has_cleaned_and_removed(folder: Path) -> bool:
    cleaned = folder / "cleaner-offset-checkpoint"
    return (
        cleaned.exists()
        and "compacted" in cleaned.read_text()
        and not (folder / "removed-0" / "00000000000000000000.log").exists()
    )


@pytest.mark.usefixtures("against")
def test_beside_a_broker_at_work(kwire_broker_factory: BrokerFactory) -> None:
    broker = kwire_broker_factory({"log.retention.check.interval.ms": 100, "log.cleaner.backoff.ms": 100})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics(
        [NewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
    ).values():
        future.result(TIMEOUT)
    with writing(broker.bootstrap):
        deadline = time.monotonic() + 2 * TIMEOUT
        while not has_cleaned_and_removed(broker.data_dir):
            assert "a broker is at work here" in verify(broker.data_dir)
            assert time.monotonic() < deadline, "nothing is cleaned, or nothing removed"
        for _ in range(3):
            verify(broker.data_dir)
    broker.stop()
    assert " 0 faults, " in verify(broker.data_dir)
