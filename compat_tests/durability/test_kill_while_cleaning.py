"""kill -9 while the log cleaner rewrites what was acknowledged."""

from __future__ import annotations

import random
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kwire.testing.process import BrokerProcess

ROUNDS = 5
KEYS = 30
TIMEOUT = 60
"""Seconds."""
CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}
SETTINGS = {
    "log.cleaner.backoff.ms": 10,
    # A cleaning takes about a second.
    "log.cleaner.io.max.bytes.per.second": 500_000,
}


def test_the_latest_of_each_key_survives(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    written: dict[int, tuple[bytes, bytes]] = {}
    with BrokerProcess(SETTINGS, data_dir=tmp_path / "data") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("topic", 1, 1, config=CONFIGS)])["topic"].result(TIMEOUT)
        for _ in range(ROUNDS):
            _write_until_cleaned(broker, written, chance)
            broker.kill()
            broker.start()
            read = _read(broker)
            assert all(written[offset] == record for offset, record in read.items())
            latest = {key: offset for offset, (key, _) in sorted(written.items())}
            assert set(latest.values()) <= set(read)
        deadline = time.monotonic() + TIMEOUT
        while len(_read(broker)) > len(written) / 2:  # undisturbed, the cleaner comes to an end
            assert time.monotonic() < deadline


def _write_until_cleaned(broker: BrokerProcess, written: dict[int, tuple[bytes, bytes]], chance: random.Random) -> None:
    """Returns while a cleaning is under way."""
    deadline = time.monotonic() + TIMEOUT
    while not any((broker.data_dir / "topic-0").glob("*.cleaned")):
        assert time.monotonic() < deadline
        _write(broker, written, chance)


def _write(broker: BrokerProcess, written: dict[int, tuple[bytes, bytes]], chance: random.Random) -> None:
    """Writes for a while and notes what is acknowledged; waits until all of it is."""

    def acknowledged(error: object, message: Message) -> None:
        assert error is None
        written[message.offset()] = message.key(), message.value()

    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "batch.num.messages": 50})
    for number in range(chance.randrange(500, 2000)):
        producer.produce("topic", chance.randbytes(40).hex(), b"%d" % (number % KEYS), on_delivery=acknowledged)
        producer.poll(0.001 if number % 50 == 0 else 0)
    assert not producer.flush(TIMEOUT)


def _read(broker: BrokerProcess) -> dict[int, tuple[bytes, bytes]]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False})
    partition = TopicPartition("topic", 0, 0)
    _, end = consumer.get_watermark_offsets(partition, TIMEOUT)
    consumer.assign([partition])
    read = {}
    try:
        while (position := consumer.position([partition])[0].offset) < end:
            message = consumer.poll(TIMEOUT)
            assert message is not None, position
            if message.error() is not None:
                # librdkafka doubles its size of a fetch with each response that holds emptied batches only, and says
                # this when it has no larger one; it goes on all the same.
                assert message.error().code() == KafkaError.MSG_SIZE_TOO_LARGE, message.error()
                continue
            read[message.offset()] = message.key(), message.value()
            if message.offset() == end - 1:
                break
    finally:
        consumer.close()
    return read
