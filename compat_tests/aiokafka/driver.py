"""aiokafka as its users drive it; every call runs an event loop of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, KafkaTimeoutError, NoOffsetForPartitionError, OffsetOutOfRangeError

from compat_tests.driver import (
    TIMEOUT,
    Acks,
    Admin,
    Bounds,
    Driver,
    Received,
    Record,
    Refused,
    Reset,
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
    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        compression: str = "none",
        acks: Acks = "all",
        idempotent: bool = False,
        largest: int | None = None,
    ) -> list[int]:
        limits = {} if largest is None else {"max_request_size": largest, "max_batch_size": largest}

        async def run() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if compression == "none" else compression,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                linger_ms=5,
                request_timeout_ms=5000,
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

    def consume(
        self,
        topic: str,
        count: int,
        *,
        start: int | Mapping[int, int] = 0,
        reset: Reset = "none",
        largest: int | None = None,
        timeout: float = TIMEOUT,
    ) -> list[Received]:
        limits = {} if largest is None else {"max_partition_fetch_bytes": largest}
        starts = {0: start} if isinstance(start, int) else start
        deadline = time.monotonic() + timeout

        async def run(consumer: AIOKafkaConsumer) -> list[Received]:
            received: list[Received] = []
            consumer.assign([TopicPartition(topic, partition) for partition in starts])
            for partition, offset in starts.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            while len(received) < count and time.monotonic() < deadline:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    received += [
                        Received(
                            key=record.key,
                            value=record.value,
                            headers=tuple(record.headers),
                            timestamp=record.timestamp,
                            partition=record.partition,
                            offset=record.offset,
                            log_append_time=record.timestamp_type == 1,
                        )
                        for record in records
                    ]
            return received[:count]

        return self._with_consumer(run, auto_offset_reset=reset, **limits)

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

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        if assignment is None:
            topic = NewTopic(name, partitions, replication_factor, topic_configs=dict(configs or {}))
        else:
            replicas = {index: list(brokers) for index, brokers in enumerate(assignment)}
            topic = NewTopic(name, -1, -1, replica_assignments=replicas, topic_configs=dict(configs or {}))
        answer = self._call(lambda client: client.create_topics([topic], validate_only=validate_only))
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
