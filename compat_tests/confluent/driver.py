"""confluent-kafka (librdkafka) as its users drive it: delivery reports, `assign`, futures from the admin client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
    admin,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    OffsetSpec,
)

from compat_tests.driver import (
    TIMEOUT,
    Admin,
    Bounds,
    Driver,
    IncrementalAdmin,
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

LOCAL = {
    KafkaError._UNKNOWN_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    KafkaError._AUTO_OFFSET_RESET: ErrorCode.OFFSET_OUT_OF_RANGE,
    KafkaError._MSG_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
}
"""Errors that librdkafka gives up with by itself, and what a broker would call them."""


def refused(error: KafkaError) -> Exception:
    """The Refused that this error means."""
    code = LOCAL.get(error.code(), error.code())
    return Refused(code, error.str()) if code >= -1 else KafkaException(error)


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the client's exceptions into Refused."""
    try:
        yield
    except KafkaException as error:
        raise refused(error.args[0]) from error


class ConfluentDriver(Driver):
    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": how.compression,
                "acks": how.acks,
                "enable.idempotence": how.idempotent,
                "message.timeout.ms": int(how.patience * 1000),
                **({} if how.largest is None else {"message.max.bytes": how.largest}),
            }
        )
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def report(index: int, error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            offsets[index] = -1 if offset is None else offset
            if error is not None:
                errors.append(error)

        for index, record in enumerate(records):
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp or 0,
                on_delivery=lambda error, message, index=index: report(index, error, message),
            )
        producer.flush(TIMEOUT)
        if errors:
            raise refused(errors[0])
        return [offsets[index] for index in range(len(records))]

    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]:
        limits = {} if how.largest is None else {"max.partition.fetch.bytes": how.largest}
        options = {"auto.offset.reset": "error" if how.reset == "none" else how.reset, **limits}
        received: list[Received] = []
        deadline = time.monotonic() + how.timeout
        with closing(self._consumer(**options)) as consumer, refusals():
            consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in how.starts.items()])
            while len(received) < count and (left := deadline - time.monotonic()) > 0:
                for message in consumer.consume(min(count - len(received), 1000), min(left, 0.2)):
                    if message.error():
                        raise refused(message.error())
                    received.append(_received(message))
        return received

    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        with closing(self._consumer()) as consumer, refusals():
            return Bounds(*consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT))

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        with closing(self._consumer()) as consumer, refusals():
            (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], TIMEOUT)
        return None if found.offset < 0 else found.offset

    def committed(self, group: str, topic: str, partitions: int = 1) -> list[int | None]:
        """The offset that a group has committed in each of so many partitions; None where it has none."""
        places = [TopicPartition(topic, number) for number in range(partitions)]
        with closing(self._consumer(**{"group.id": group})) as consumer, refusals():
            return [place.offset if place.offset >= 0 else None for place in consumer.committed(places, TIMEOUT)]

    def _consumer(self, **options: Any) -> Consumer:
        # librdkafka wants a group's name even where no group is used.
        base = {"bootstrap.servers": self.bootstrap, "group.id": "unused", "enable.auto.commit": False}
        return Consumer({**base, **options})


def _received(message: Message) -> Received:
    kind, timestamp = message.timestamp()
    return Received(
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
        timestamp=timestamp,
        partition=message.partition(),
        offset=message.offset(),
        log_append_time=kind == TIMESTAMP_LOG_APPEND_TIME,
    )


class ConfluentAdmin(Admin, IncrementalAdmin):
    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap})

    def _create_topic(self, topic: NewTopic) -> None:
        config = dict(topic.configs)
        if topic.assignment is None:
            new = admin.NewTopic(topic.name, topic.partitions, topic.replication_factor, config=config)
        else:
            replicas = [list(brokers) for brokers in topic.assignment]
            new = admin.NewTopic(topic.name, len(replicas), replica_assignment=replicas, config=config)
        _only(self._client.create_topics([new], validate_only=topic.validate_only))

    def delete_topic(self, name: str) -> None:
        _only(self._client.delete_topics([name]))

    def create_partitions(self, topic: str, total: int) -> None:
        _only(self._client.create_partitions([NewPartitions(topic, total)]))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        return _only(self._client.delete_records([TopicPartition(topic, partition, before)])).low_watermark

    def describe_topic(self, name: str) -> TopicLayout:
        topic = _only(self._client.describe_topics(TopicCollection([name])))
        partitions = sorted(topic.partitions, key=lambda partition: partition.id)
        return TopicLayout(tuple(tuple(node.id for node in p.replicas) for p in partitions), topic.is_internal)

    def topic_names(self) -> set[str]:
        with refusals():
            return set(self._client.list_topics(timeout=TIMEOUT).topics)

    def brokers(self) -> set[tuple[int, str, int]]:
        with refusals():
            nodes = self._client.describe_cluster().result(TIMEOUT).nodes
        return {(node.id, node.host, node.port) for node in nodes}

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs("topic", topic)

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        _only(self._client.alter_configs([ConfigResource("topic", topic, set_config=dict(configs))]))

    def change_configs(self, kind: str, name: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType[operation.upper()])
            for operation, key, value in changes
        ]
        _only(self._client.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=entries)]))

    def broker_configs(self, broker: str) -> dict[str, Setting]:
        return self._configs("broker", broker)

    def list_offset(self, topic: str, spec: int, partition: int = 0) -> int:
        wanted = {-1: OffsetSpec.latest, -2: OffsetSpec.earliest, -3: OffsetSpec.max_timestamp}
        offset_spec = wanted[spec]() if spec in wanted else OffsetSpec.for_timestamp(spec)
        where = TopicPartition(topic, partition)
        uncommitted = IsolationLevel.READ_UNCOMMITTED
        return _only(self._client.list_offsets({where: offset_spec}, isolation_level=uncommitted)).offset

    def _configs(self, kind: str, name: str) -> dict[str, Setting]:
        entries: dict[str, ConfigEntry] = _only(self._client.describe_configs([ConfigResource(kind, name)]))
        overridden = {
            source.value
            for source in (
                ConfigSource.DYNAMIC_TOPIC_CONFIG,
                ConfigSource.DYNAMIC_BROKER_CONFIG,
                ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
            )
        }
        return {key: Setting(entry.value, entry.source in overridden) for key, entry in entries.items()}


def _only(futures: Mapping[Any, Future[T]]) -> T:
    """The result of the one future of an admin call."""
    (future,) = futures.values()
    with refusals():
        return future.result(TIMEOUT)
