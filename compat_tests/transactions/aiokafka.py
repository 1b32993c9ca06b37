"""aiokafka, a call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from compat_tests.reading import Isolation
from compat_tests.transactions.client import PATIENT_MS, Client, Fenced, TransactionalProducer

T = TypeVar("T")


@contextmanager
def fences() -> Iterator[None]:
    try:
        yield
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise Fenced(str(error)) from error


class AiokafkaProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = asyncio.Runner()
        self._producer = self._loop.run(self._open(bootstrap, transactional_id, timeout_ms))

    async def _open(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> AIOKafkaProducer:
        settings = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings)
        with fences():
            await producer.start()
        return producer

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._call(self._producer.send_and_wait, topic, value, partition=partition)

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        places = {TopicPartition(topic, partition): offset for partition, offset in offsets.items()}
        self._call(self._producer.send_offsets_to_transaction, places, group)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._call(self._producer.stop)
        self._loop.close()

    def _call(self, method: Callable[..., Awaitable[object]], *arguments: object, **options: object) -> None:
        async def run() -> None:
            with fences():
                await method(*arguments, **options)

        self._loop.run(run())


class AiokafkaClient(Client):
    def producer(self, transactional_id: str, timeout_ms: int = PATIENT_MS) -> AiokafkaProducer:
        return AiokafkaProducer(self.bootstrap, transactional_id, timeout_ms)

    def read(self, topic: str, isolation: Isolation = "read_committed", partitions: int = 1) -> list[bytes]:
        async def use(consumer: AIOKafkaConsumer) -> list[bytes]:
            places = [TopicPartition(topic, number) for number in range(partitions)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            values: list[bytes] = []
            while any([await consumer.position(place) < end for place, end in ends.items()]):
                for batch in (await consumer.getmany(timeout_ms=100)).values():
                    values += [record.value for record in batch]
            return values

        return self._with_consumer(use, isolation_level=isolation)

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        async def use(consumer: AIOKafkaConsumer) -> int | None:
            return await consumer.committed(TopicPartition(topic, partition))

        return self._with_consumer(use, group_id=group)

    def _with_consumer(self, use: Callable[[AIOKafkaConsumer], Awaitable[T]], **options: Any) -> T:
        async def run() -> T:
            settings = {"enable_auto_commit": False, "fetch_max_wait_ms": 100, **options}
            async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **settings) as consumer:
                return await use(consumer)

        return asyncio.run(run())
