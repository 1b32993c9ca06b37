"""kafka-python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from compat_tests.driver import TIMEOUT
from compat_tests.reading import Isolation
from compat_tests.transactions.client import PATIENT_MS, Client, Fenced, TransactionalProducer


@contextmanager
def fences() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise Fenced(str(error)) from error
    except KafkaError as error:
        # Once fenced, everything fails with an error of the client's own that quotes the broker's.
        if "ProducerFenced" in str(error) or "InvalidProducerEpoch" in str(error):
            raise Fenced(str(error)) from error
        raise


class KafkaPythonProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        settings = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, **settings)
        with fences():
            self._producer.init_transactions()

    def begin(self) -> None:
        with fences():
            self._producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        with fences():
            self._producer.send(topic, value, partition=partition).get(TIMEOUT)

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()
        }
        with fences():
            self._producer.send_offsets_to_transaction(places, group)

    def commit(self) -> None:
        with fences():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with fences():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class KafkaPythonClient(Client):
    def producer(self, transactional_id: str, timeout_ms: int = PATIENT_MS) -> KafkaPythonProducer:
        return KafkaPythonProducer(self.bootstrap, transactional_id, timeout_ms)

    def read(self, topic: str, isolation: Isolation = "read_committed", partitions: int = 1) -> list[bytes]:
        consumer = self._consumer(isolation_level=isolation)
        try:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning()
            values = []
            while any(consumer.position(place) < end for place, end in ends.items()):
                for batch in consumer.poll(timeout_ms=1000).values():
                    values += [record.value for record in batch]
            return values
        finally:
            consumer.close()

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        consumer = self._consumer(group_id=group)
        try:
            return consumer.committed(TopicPartition(topic, partition))
        finally:
            consumer.close()

    def _consumer(self, **settings: Any) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=100, **settings
        )
