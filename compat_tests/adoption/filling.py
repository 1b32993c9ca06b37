"""Fills a broker with all that an import has to bring over, and looks whether it is there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from compat_tests.driver import TIMEOUT
from compat_tests.oracle.asking import BROKER, GROUP, TOPIC
from compat_tests.oracle.wire import Address, Wire, response_type_of
from compat_tests.reading import Isolation, everything
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message

MIB = 1 << 20
TOPICS: Mapping[str, tuple[int, dict[str, str]]] = {
    "orders": (3, {"retention.ms": "-1", "segment.bytes": str(MIB), "min.insync.replicas": "1"}),
    "prices": (2, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"}),
    "moves": (1, {}),
    "steps": (1, {}),
}
"""Partitions and configs."""
RETURNED = {"by-hand": 1, "returned": 2}
"""Partitions of topics that stay empty, until they get what a kwire had."""
GROUPS = {"classic-readers": "classic", "consumer-readers": "consumer"}
TRANSACTIONAL_ID = "mover"
BY_NAME = 12
"""The last version of Produce that names its topics."""


def ask(address: Address, request: Message, version: int | None = None) -> Any:
    """One request over a connection of its own."""
    version = request.max_version if version is None else version
    with closing(Wire(address)) as wire:
        wire.send(request, version)
        return wire.receive(response_type_of(request), version)


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    _all(admin.create_topics([NewTopic(name, count, 1, config=config) for name, (count, config) in TOPICS.items()]))
    _all(admin.create_topics([NewTopic(name, count, 1) for name, count in RETURNED.items()]))
    _all(admin.create_topics([NewTopic("grown", 1, 1), NewTopic("gone", 2, 1, config={"retention.ms": "5"})]))
    _all(admin.create_partitions([NewPartitions("grown", 3)]))
    _all(admin.delete_topics(["gone"]))


def set_configs(address: Address, bootstrap: str, node_id: int) -> None:
    """Dynamic configs of brokers and groups; and what kwire has no place for."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    alter_config(address, BROKER, "", "log.cleaner.threads", "2")
    alter_config(address, BROKER, str(node_id), "log.retention.ms", "777600000")
    alter_config(address, GROUP, "consumer-readers", "consumer.session.timeout.ms", "50000")
    alter_config(address, TOPIC, "moves", "max.message.bytes", "2000000")
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    _all(admin.create_acls([acl]))
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    _all(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", credential, b"secret")]))
    quota = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name="spark")],
        ops=[OpData(key="producer_byte_rate", value=1e6, remove=False)],
    )
    assert not ask(address, AlterClientQuotasRequest(entries=[quota], validate_only=False)).entries[0].error_code


def alter_config(address: Address, kind: int, name: str, key: str, value: str) -> None:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = ask(address, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
    assert not answer.responses[0].error_code, answer


def write_records(bootstrap: str, start: int = 0) -> None:
    """Of all codecs and sizes, keyed ones, and what a transaction commits, aborts, and leaves open."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with flushed({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20}) as producer:
            for number in range(start, start + 300):
                size = 12_000 if codec == "none" else 2000  # enough for a second segment
                value = f"{codec} {number} ".ljust(size, "." if number % 2 else "#")
                producer.produce("orders", value, partition=number % 3, headers={"codec": codec})
                producer.produce("prices", f"{codec} {number}", key=f"key {number % 7}", partition=number % 2)


def write_transactions(bootstrap: str, start: int = 0, topic: str = "moves") -> Producer:
    """One committed, one aborted, and one that the producer returned has begun."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID, "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(TIMEOUT)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, None), start):
        producer.begin_transaction()
        for each in range(3):
            producer.produce(topic, f"move {number}.{each}")
        producer.flush(TIMEOUT)
        if end is not None:
            end(TIMEOUT)
    return producer


def read_in_groups(bootstrap: str, count: int = 20) -> dict[str, dict[int, int]]:
    """Has each of GROUPS read some records of `orders`; the offsets it committed, by partition."""
    return {group: dict(_read_in_group(bootstrap, group, count)) for group in GROUPS}


def _read_in_group(bootstrap: str, group: str, count: int) -> Iterator[tuple[int, int]]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": GROUPS[group],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])
        messages = []
        while len(messages) < count:
            messages += consumer.consume(count - len(messages), TIMEOUT)
        assert all(message.error() is None for message in messages)
        consumer.commit(message=messages[-1], asynchronous=False)
        places = consumer.committed([TopicPartition("orders", number) for number in range(3)], TIMEOUT)
        yield from ((place.partition, place.offset) for place in places if place.offset >= 0)


def committed(bootstrap: str, group: str) -> dict[int, int]:
    """The group's offsets of `orders`, by partition."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})) as consumer:
        places = consumer.committed([TopicPartition("orders", number) for number in range(3)], TIMEOUT)
        return {place.partition: place.offset for place in places if place.offset >= 0}


def contents(
    bootstrap: str, isolation: Isolation = "read_committed", topics: Iterable[str] = TOPICS
) -> dict[tuple[str, int], list[tuple[Any, ...]]]:
    """Every record of the topics: offset, time, key, value, headers."""
    found: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    for topic in topics:
        for message in everything(bootstrap, topic, isolation):
            record = (message.offset(), message.timestamp(), message.key(), message.value(), message.headers())
            found.setdefault((topic, message.partition()), []).append(record)
    return found


class Steps:
    """An idempotent producer by hand, which can send a batch again."""

    def __init__(self, address: Address) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        deadline = time.monotonic() + TIMEOUT
        while (answer := ask(address, request)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            assert time.monotonic() < deadline, "Apache Kafka has no producer ids yet"
            time.sleep(0.05)
        assert not answer.error_code, answer
        self._time = int(time.time() * 1000)  # a producer that was silent for a day is forgotten
        self.id: int = answer.producer_id
        self.epoch: int = answer.producer_epoch

    def send(self, address: Address, sequence: int) -> tuple[int, int]:
        """A batch of two; the error code, and the offset at which it is."""
        records = [Record(index, self._time, b"k", b"step %d" % (sequence + index), []) for index in range(2)]
        blob = build_batch(records, producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence)
        return send_batch(address, "steps", 0, blob)


def send_batch(address: Address, topic: str, partition: int, blob: bytes) -> tuple[int, int]:
    """The error code, and the offset at which the batch is."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=blob)])]
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=data)
    (answer,) = ask(address, request, BY_NAME).responses[0].partition_responses
    return answer.error_code, answer.base_offset


def delete_records(bootstrap: str, partition: int, offset: int) -> None:
    """Of `orders`, those before the offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    _all(admin.delete_records([TopicPartition("orders", partition, offset)]))


def topic_configs(bootstrap: str, topic: str) -> dict[str, str]:
    """Those that were set for the topic itself."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (answer,) = admin.describe_configs([resource]).values()
    return {name: entry.value for name, entry in answer.result(TIMEOUT).items() if entry.source == 1}


@contextmanager
def flushed(settings: dict[str, Any]) -> Iterator[Producer]:
    errors: list[Any] = []
    producer = Producer({"log_level": 0, **settings}, on_delivery=lambda error, _: errors.append(error))
    yield producer
    assert producer.flush(TIMEOUT) == 0
    assert not any(errors)


def _all(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(TIMEOUT)
