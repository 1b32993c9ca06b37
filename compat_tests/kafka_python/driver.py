"""kafka-python as its users drive it: a producer with futures, a consumer with assigned partitions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import BrokerResponseError, KafkaTimeoutError

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


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the client's exceptions into Refused."""
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error
    except KafkaTimeoutError as error:
        raise Refused(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error


class KafkaPythonDriver(Driver):
    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]:
        limits = {} if how.largest is None else {"max_request_size": how.largest}
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if how.compression == "none" else how.compression,
            acks=how.acks if how.acks == "all" else int(how.acks),
            enable_idempotence=how.idempotent,
            linger_ms=5,
            max_block_ms=how.patience * 1000,
            **limits,
        )
        with closing(producer), refusals():
            sent = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            producer.flush(TIMEOUT)
            return [future.get(TIMEOUT).offset for future in sent]

    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]:
        limits = {} if how.largest is None else {"max_partition_fetch_bytes": how.largest}
        received: list[Received] = []
        deadline = time.monotonic() + how.timeout
        with closing(self._consumer(auto_offset_reset=how.reset, **limits)) as consumer, refusals():
            consumer.assign([TopicPartition(topic, partition) for partition in how.starts])
            for partition, offset in how.starts.items():
                consumer.seek(TopicPartition(topic, partition), offset)
            while len(received) < count and time.monotonic() < deadline:
                for records in consumer.poll(timeout_ms=200).values():
                    received += map(Received.of, records)
        return received[:count]

    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        where = TopicPartition(topic, partition)
        with closing(self._consumer()) as consumer, refusals():
            return Bounds(consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where])

    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        where = TopicPartition(topic, partition)
        with closing(self._consumer()) as consumer, refusals():
            found = consumer.offsets_for_times({where: timestamp})[where]
        return None if found is None else found.offset

    def _consumer(self, **options: Any) -> KafkaConsumer:
        return KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False, **options)


class KafkaPythonAdmin(Admin, IncrementalAdmin):
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @contextmanager
    def _client(self) -> Iterator[KafkaAdminClient]:
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap)) as client, refusals():
            yield client

    def _create_topic(self, topic: NewTopic) -> None:
        options: dict[str, Any] = {"configs": dict(topic.configs)}
        if topic.assignment is None:
            options |= {"num_partitions": topic.partitions, "replication_factor": topic.replication_factor}
        else:
            options["assignments"] = dict(enumerate(topic.assignment))
        with self._client() as client:
            client.create_topics({topic.name: options}, validate_only=topic.validate_only)

    def delete_topic(self, name: str) -> None:
        with self._client() as client:
            client.delete_topics([name])

    def create_partitions(self, topic: str, total: int) -> None:
        with self._client() as client:
            client.create_partitions({topic: total})

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with self._client() as client:
            return client.delete_records({where: before})[where]["low_watermark"]

    def describe_topic(self, name: str) -> TopicLayout:
        with self._client() as client:
            (topic,) = client.describe_topics([name])
        if topic["error_code"]:
            raise Refused(topic["error_code"], name)
        partitions = sorted(topic["partitions"], key=lambda partition: partition["partition_index"])
        return TopicLayout(tuple(tuple(partition["replica_nodes"]) for partition in partitions), topic["is_internal"])

    def topic_names(self) -> set[str]:
        with self._client() as client:
            return set(client.list_topics())

    def brokers(self) -> set[tuple[int, str, int]]:
        with self._client() as client:
            nodes = client.describe_cluster()["brokers"]
        return {(node.get("broker_id", node.get("node_id")), node["host"], node["port"]) for node in nodes}

    def topic_configs(self, topic: str) -> dict[str, Setting]:
        return self._configs("topic", topic)

    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        # The client adds every other override to an AlterConfigs request; after a reset there is none.
        with self._client() as client:
            client.reset_configs([ConfigResource("topic", topic)], incremental=False)
        self._alter("topic", topic, dict(configs), incremental=False)

    def change_configs(self, kind: str, name: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        self._alter(kind, name, {key: (operation, value) for operation, key, value in changes}, incremental=True)

    def broker_configs(self, broker: str) -> dict[str, Setting]:
        return self._configs("broker", broker)

    def list_offset(self, topic: str, spec: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with self._client() as client:
            return client.list_partition_offsets({where: spec})[where].offset

    def _alter(self, kind: str, name: str, configs: dict[str, Any], incremental: bool) -> None:
        resource = ConfigResource(kind, name, configs)
        with self._client() as client:
            answer = client.alter_configs([resource], raise_on_unknown=False, incremental=incremental)[kind][name]
        if answer != "OK":
            raise Refused(next(code for code in ErrorCode if f"[Error {code.value}]" in answer), answer)

    def _configs(self, kind: str, name: str) -> dict[str, Setting]:
        with self._client() as client:
            entries = client.describe_configs([ConfigResource(kind, name)], config_filter="all")[kind][name]
        if not entries:
            # The client drops the error code of this answer; what is left of it is that there are no configs.
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        overridden = ("DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")
        return {key: Setting(entry["value"], entry["config_source"] in overridden) for key, entry in entries.items()}
