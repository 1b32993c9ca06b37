"""kafka-python."""

from __future__ import annotations

from collections.abc import Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConnectionError

from compat_tests.groups.consumer import GroupConsumer, Settings

STRATEGIES = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}


class Consumer(GroupConsumer):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._consumer = KafkaConsumer(
            settings.topic,
            bootstrap_servers=settings.bootstrap,
            group_id=settings.group,
            group_instance_id=settings.instance_id,
            partition_assignment_strategy=[STRATEGIES[settings.strategy]],
            auto_offset_reset="earliest",
            enable_auto_commit=settings.auto_commit,
            auto_commit_interval_ms=200,
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=200,
            reconnect_backoff_max_ms=500,
        )
        # It joins with its topic known. Where a poll ends just before a leader learns what its topic has, the client
        # (3.0.12) forgets the join that is under way, and never takes its assignment.
        self._consumer.partitions_for_topic(settings.topic)

    def poll(self) -> Iterator[tuple[int, int, bytes]]:
        try:
            found = self._consumer.poll(timeout_ms=300)
        except KafkaConnectionError:
            return  # nobody listens while the broker starts; this client says so, the others try again
        for records in found.values():
            for record in records:
                yield record.partition, record.offset, record.value

    def assigned(self) -> set[int]:
        return {place.partition for place in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def commit_later(self) -> None:
        self._consumer.commit_async()

    def pause(self, partition: int) -> None:
        self._consumer.pause(TopicPartition(self.settings.topic, partition))

    def resume(self, partition: int) -> None:
        self._consumer.resume(TopicPartition(self.settings.topic, partition))

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self.settings.topic, partition), offset)

    def close(self) -> None:
        self._consumer.close()
