"""Members of groups of the consumer protocol, and what one asks about such groups."""

from __future__ import annotations

from typing import Any

from compat_tests.oracle.sides import Side
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.version_prefixed import encode_version_prefixed


class Member:
    """A client of the consumer protocol; what it asks goes into the side's transcript."""

    def __init__(self, side: Side, group: str, name: str, topic: str, **fields: Any) -> None:
        self.side = side
        self.group = group
        self.id = name
        self.topic = topic
        self.fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic], **fields}
        self.instance = {key: value for key, value in fields.items() if key == "instance_id"}
        self.epoch = 0
        self.has: list[int] = []

    def join(self, version: int = 1, **fields: Any) -> Any:
        return self._take(
            self.ask("joins", version, **{"member_epoch": 0, "topic_partitions": [], **self.fields, **fields})
        )

    def beat(self, note: str = "", version: int = 1, **fields: Any) -> Any:
        """Says what it has, having let go of what it was told to."""
        owned = [TopicPartitions(topic_id=self.side.id_of(self.topic), partitions=self.has)] if self.has else []
        return self._take(self.ask(note, version, **{"topic_partitions": owned, **self.instance, **fields}))

    def leave(self, epoch: int = -1, version: int = 1) -> Any:
        return self.ask("leaves", version, member_epoch=epoch, **self.instance)

    def ask(self, note: str, version: int = 1, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, **fields}
        )
        return self.side.ask(request, version, note=f"{self.id} {note}".rstrip())

    def _take(self, answer: Any) -> Any:
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = [index for topic in answer.assignment.topic_partitions for index in topic.partitions]
        return answer


def known_topic(side: Side, partitions: int, name: str = "topic") -> str:
    """A topic that the group coordinator knows of, which in Apache Kafka takes a moment longer than elsewhere."""
    topic, group = side.topic(name, partitions), side.name("probe")
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="probe",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    side.call(request, until=lambda answer: answer.assignment is not None and answer.assignment.topic_partitions)
    side.call(ConsumerGroupHeartbeatRequest(group_id=group, member_id="probe", member_epoch=-1))
    side.call(DeleteGroupsRequest(groups_names=[group]))
    return topic


def assignment(topic: str, *partitions: int) -> bytes:
    """What a leader hands in for a member."""
    topics = [TopicPartition(topic=topic, partitions=list(partitions))]
    return encode_version_prefixed(ConsumerProtocolAssignment(assigned_partitions=topics), 1)


def described(side: Side, group: str, note: str = "") -> None:
    for version in range(2):
        side.ask(
            ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), version, note=note
        )


def eventually(side: Side, scenario: Any) -> None:
    """kwire's answer may come a moment before it has resolved an expression, too."""
    before, side._eventual = side._eventual, True
    try:
        scenario(side)
    finally:
        side._eventual = before
