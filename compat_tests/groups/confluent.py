"""confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from compat_tests.groups.consumer import GroupConsumer, Settings


class Consumer(GroupConsumer):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        config = {
            "bootstrap.servers": settings.bootstrap,
            "group.id": settings.group,
            "group.protocol": settings.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": settings.auto_commit,
            "auto.commit.interval.ms": 200,
            "log_level": 0,
        }
        if settings.protocol == "consumer":
            config["group.remote.assignor"] = settings.strategy
        else:
            config["partition.assignment.strategy"] = settings.strategy
            config["session.timeout.ms"] = settings.session_ms
            config["heartbeat.interval.ms"] = 200
        if settings.instance_id is not None:
            config["group.instance.id"] = settings.instance_id
        self._consumer = confluent_kafka.Consumer(config)
        self._consumer.subscribe([settings.topic])

    def poll(self) -> Iterator[tuple[int, int, bytes]]:
        for message in self._consumer.consume(100, 0.1):
            error = message.error()
            if error is None:
                yield message.partition(), message.offset(), message.value()
            elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                raise SystemExit(str(error))

    def assigned(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def commit_later(self) -> None:
        self._consumer.commit(asynchronous=True)

    def pause(self, partition: int) -> None:
        self._consumer.pause([TopicPartition(self.settings.topic, partition)])

    def resume(self, partition: int) -> None:
        self._consumer.resume([TopicPartition(self.settings.topic, partition)])

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.settings.topic, partition, offset))

    def close(self) -> None:
        self._consumer.close()
