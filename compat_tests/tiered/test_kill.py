"""kill -9 while segments go to remote storage: nothing acknowledged is lost or doubled, nothing is left over there."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from confluent_kafka import Message, Producer

from compat_tests.tiered.tier import TIMEOUT, consume, copies, create, in_directory, settings, until, until_tiered
from kwire.ports.real_files import PosixFileSystem
from kwire.storage.inspection.remote_sizes import remote_sizes
from kwire.testing.process import BrokerProcess

ROUNDS = 6


def test_kills_under_load(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    remote = tmp_path / "remote"
    acknowledged: dict[int, int] = {}
    with BrokerProcess(settings(in_directory(remote)), data_dir=tmp_path / "data") as broker:
        create(broker, "t", internal_segment_bytes="50000", local_retention_bytes="100000")
        with Load(broker, acknowledged):
            for _ in range(ROUNDS):
                before = len(copies(remote))
                until(lambda before=before: len(copies(remote)) > before, "nothing is copied")  # type: ignore[misc]
                time.sleep(chance.random() * 0.3)
                broker.kill()
                broker.start()
        until_tiered(broker, "t")
        read = {int(value.split()[0]): offset for offset, value in consume(broker, "t")}
        assert {number: read[number] for number in acknowledged} == acknowledged
        assert sorted(read.values()) == list(range(len(read)))
        assert [number for number, _ in sorted(read.items(), key=lambda item: item[1])] == sorted(read)
        until(lambda: told(broker) == len(copies(remote)), "the store and the account of it differ")


class Load(threading.Thread):
    """An idempotent producer that numbers its records. In a `with` it runs; at the end all are acknowledged."""

    def __init__(self, broker: BrokerProcess, acknowledged: dict[int, int]) -> None:
        super().__init__()
        config = {"enable.idempotence": True, "linger.ms": 5, "batch.size": 16_000}
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
        self._acknowledged = acknowledged
        self._ending = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._ending.is_set():
            with suppress(BufferError):
                self._producer.produce("t", b"%d " % number + bytes(500), partition=0, on_delivery=self._delivered)
                number += 1
            self._producer.poll(0.001)

    def _delivered(self, error: object, message: Message) -> None:
        assert error is None
        self._acknowledged[int(message.value().split()[0])] = message.offset()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self._ending.set()
        self.join(TIMEOUT)
        if failed:
            self._producer.purge()
        else:
            assert not self._producer.flush(TIMEOUT)


def told(broker: BrokerProcess) -> int:
    """How many copies there are by the records."""
    return sum(size.segments for size in remote_sizes(PosixFileSystem(), [str(broker.data_dir)]))
