"""aiokafka as its users drive it; every call runs an event loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, admin
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, KafkaTimeoutError, NoOffsetForPartitionError, OffsetOutOfRangeError

from compat_tests.driver import (
    Admin,
    Bounds,
    Driver,
    NewTopic,
    Reading,
    Received,
    Record,
    Refused,
    Sending,
    Setting,
    TopicLayout,
)
from kwire.protocol.errors import ErrorCode

T = TypeVar("T")
CREATED_BY_THE_TOPIC = 1
"""The config source of a topic's own override, DYNAMIC_TOPIC_CONFIG."""


@asynccontextmanager
async def refusals() -> AsyncIterator[None]:
    """Turns the client's exceptions into Refused."""
    try:
        yield
    except (OffsetOutOfRangeError, NoOffsetForPartitionError) as error:
        raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE, str(error)) from error
    except KafkaTimeoutError as error:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
    except KafkaError as error:
        if getattr(error, "errno", None) is None:
            raise
        raise Refused(error.errno, str(error)) from error


class AiokafkaDriver(Driver):
    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]:
        limits = {} if how.largest is None else {"max_request_size": how.largest, "max_batch_size": how.largest}

        async def run() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if how.compression == "none" else how.compression,
                acks=how.acks if how.acks == "all" else int(how.acks),
                enable_idempotence=how.idempotent,
                linger_ms=5,
                request_timeout_ms=int(how.patience * 1000),
                **limits,
            )
            async with refusals(), producer:
                sent = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=record.partition,
                        timestamp_ms=record.timestamp,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                reports = await asyncio.gather(*sent)
            return [-1 if report is None else report.offset for report in reports]

        return asyncio.run(run())

    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]:
        limits = {} if how.largest is None else {"max_partition_fetch_bytes": how.largest}
        deadline = time.monotonic() + how.timeout

        async def run(consumer: AIOKafkaConsumer) -> list[Received]:
            received: list[Received] = []
            consumer.assign([TopicPartition(topic, partition) for partition in how.starts])
            for partition, offset in how.starts.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            while len(received) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    received += map(Received.of, records)
            return received[:count]

        return self._with_consumer(run, auto_offset_reset=how.reset, **limits)

    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        where = TopicPartition(topic, partition)

        async def run(consumer: AIOKafkaConsumer) -> Bounds:
            begin, end = await asyncio.gather(consumer.beginning_offsets([where]), consumer.end_offsets([where]))
            return Bounds(begin[where], end[where])

        return self._with_consumer(run)

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        where = TopicPartition(topic, partition)

        async def run(consumer: AIOKafkaConsumer) -> int | None:
            found = (await consumer.offsets_for_times({where: timestamp}))[where]
            return None if found is None else found.offset

        return self._with_consumer(run)

    def _with_consumer(self, use: Callable[[AIOKafkaConsumer], Awaitable[T]], **options: Any) -> T:
        async def run() -> T:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False, **options
            )
            async with refusals(), consumer:
                return await use(consumer)

        return asyncio.run(run())


class AiokafkaAdmin(Admin):
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _call(self, use: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def run() -> T:
            client = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            async with refusals():
                await client.start()
                try:
                    return await use(client)
                finally:
                    await client.close()

        return asyncio.run(run())

    def _create_topic(self, topic: NewTopic) -> None:
        if topic.assignment is None:
            numbers, replicas = (topic.partitions, topic.replication_factor), None
        else:
            numbers, replicas = (-1, -1), dict(enumerate(map(list, topic.assignment)))
        new = admin.NewTopic(topic.name, *numbers, replica_assignments=replicas, topic_configs=dict(topic.configs))
        answer = self._call(lambda client: client.create_topics([new], validate_only=topic.validate_only))
        _check(*answer.topic_errors[0][1:])

    def delete_topic(self, name: str) -> None:
        answer = self._call(lambda client: client.delete_topics([name]))
        _check(answer.topic_error_codes[0][1])

    def create_partitions(self, topic: str, total: int) -> None:
        self._call(lambda client: client.create_partitions({topic: NewPartitions(total)}))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        return self._call(lambda client: client.delete_records({where: RecordsToDelete(before)}))[where]

    def describe_topic(self, name: str) -> TopicLayout:
        (topic,) = self._call(lambda client: client.describe_topics([name]))
        _check(topic["error_code"])
        partitions = sorted(topic["partitions"], key=lambda partition: partition["partition"])
        return TopicLayout(tuple(tuple(p["replicas"]) for p in partitions), topic["is_internal"])

    def topic_names(self) -> set[str]:
        return set(self._call(lambda client: client.list_topics()))

    def brokers(self) -> set[tuple[int, str, int]]:
        nodes = self._call(lambda client: client.describe_cluster())["brokers"]
        return {(node["node_id"], node["host"], node["port"]) for node in nodes}

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._call(lambda client: client.describe_configs([resource]))
        code, message, _kind, _name, entries = answer.resources[0]
        _check(code, message)
        return {key: Setting(value, source == CREATED_BY_THE_TOPIC) for key, value, _, source, *_ in entries}

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        answers = self._call(lambda client: client.alter_configs([resource]))
        _check(*answers[0].resources[0][:2])


def _check(code: int, message: str | None = None) -> None:
    if code:
        raise Refused(code, message or "")
