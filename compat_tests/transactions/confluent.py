"""confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT
from compat_tests.reading import Isolation, everything
from compat_tests.transactions.client import PATIENT_MS, Client, Fenced, TransactionalProducer

FENCED = {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}


@contextmanager
def fences() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() in FENCED:
            raise Fenced(str(error)) from error
        raise


class ConfluentProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        settings = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **settings})
        with fences():
            self._producer.init_transactions(TIMEOUT)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        errors: list[KafkaError] = []
        self._producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
        self._producer.flush(TIMEOUT)
        with fences():
            if errors[0] is not None:
                raise KafkaException(errors[0])

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        with closing(Consumer({"bootstrap.servers": "unused", "group.id": group, "log_level": 0})) as member, fences():
            self._producer.send_offsets_to_transaction(places, member.consumer_group_metadata(), TIMEOUT)

    def commit(self) -> None:
        with fences():
            self._producer.commit_transaction(TIMEOUT)

    def abort(self) -> None:
        with fences():
            self._producer.abort_transaction(TIMEOUT)

    def close(self) -> None:
        self._producer.purge()


class ConfluentClient(Client):
    def producer(self, transactional_id: str, timeout_ms: int = PATIENT_MS) -> ConfluentProducer:
        return ConfluentProducer(self.bootstrap, transactional_id, timeout_ms)

    def read(self, topic: str, isolation: Isolation = "read_committed", partitions: int = 1) -> list[bytes]:
        return [message.value() for message in everything(self.bootstrap, topic, isolation)]

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        return ConfluentDriver(self.bootstrap).committed(group, topic, partition + 1)[partition]
