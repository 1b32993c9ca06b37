"""Members of the consumer protocol as a client drives them, against a desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.heartbeat import heartbeat
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordinator.groups.desk import Desk, client

GROUP = "group"
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}
"""Lets each heartbeat assign, however young the assignment before is."""

Owned = dict[bytes, set[int]]


def topic_id(name: str, life: int = 0) -> bytes:
    """`life`: grows each time that the topic is created anew."""
    return name.encode().rjust(15, b"\0") + bytes([life])


def with_topics(image: MetadataImage, topics: Mapping[str, int], life: int = 0) -> MetadataImage:
    """The image in its next version, with these topics and numbers of partitions besides what it has."""
    made = {
        name: TopicImage(name, topic_id(name, life), (PartitionImage((1,), (1,), 1),) * count)
        for name, count in topics.items()
    }
    return replace(
        image,
        version=image.version + 1,
        topics={**image.topics, **made},
        topic_names={**image.topic_names, **{topic.id: name for name, topic in made.items()}},
    )


def without_topic(image: MetadataImage, name: str) -> MetadataImage:
    return replace(
        image,
        version=image.version + 1,
        topics={topic: found for topic, found in image.topics.items() if topic != name},
        topic_names={key: topic for key, topic in image.topic_names.items() if topic != name},
    )


def desk(topics: Mapping[str, int], **settings: str) -> Desk:
    made = Desk({**AT_ONCE, **settings})
    made.image = with_topics(made.image, topics)
    return made


def beat(
    desk: Desk, *, version: int = 1, may_describe: Callable[[str], bool] = lambda topic: True, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    """One heartbeat with these fields."""
    request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_epoch": 0, **fields})
    caller = client(version=version)
    response = desk.run(lambda machine, now: heartbeat(machine, caller, request, may_describe, now))
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def joining(member_id: str = "m", **fields: Any) -> dict[str, Any]:
    """The fields of a first heartbeat."""
    return {
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": 5000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
        **fields,
    }


def group_of(desk: Desk, group_id: str = GROUP) -> ConsumerGroup:
    group = desk.machine.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def owned(response: ConsumerGroupHeartbeatResponse) -> Owned:
    assert response.assignment is not None
    return {topic.topic_id: set(topic.partitions) for topic in response.assignment.topic_partitions}


class Member:
    """A client: it keeps what it was told and says what it has."""

    def __init__(self, desk: Desk, member_id: str, **fields: Any) -> None:
        self.desk = desk
        self.id = member_id
        self.epoch = 0
        self.owned: Owned = {}
        self.target: Owned = {}
        self.fields = fields
        self.full: dict[str, Any] = {}
        """What it says besides, since it did not hear the last answer."""

    def join(self) -> ConsumerGroupHeartbeatResponse:
        self.epoch, self.owned = 0, {}
        return self._take(beat(self.desk, **joining(self.id, **self.fields)))

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """Says what it has, once it has let go of what it was told to."""
        self.owned = {topic: kept for topic, has in self.owned.items() if (kept := has & self.target.get(topic, set()))}
        response = self._take(self.say(self.owned, **fields))
        return response

    def say(self, owned: Owned | None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        told = None
        if owned is not None:
            told = [TopicPartitions(topic_id=topic, partitions=sorted(has)) for topic, has in owned.items()]
        instance = {key: value for key, value in self.fields.items() if key == "instance_id"}
        said = {**instance, **self.full, **fields}
        return beat(self.desk, member_id=self.id, member_epoch=self.epoch, topic_partitions=told, **said)

    def miss(self) -> None:
        """Heartbeats, and does not hear the answer. A client in doubt says everything the next time."""
        self.say(self.owned)
        names = self.fields.get("subscribed_topic_names", ["t"])
        self.full = {"rebalance_timeout_ms": 5000, "subscribed_topic_names": names}

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        instance = {key: value for key, value in self.fields.items() if key == "instance_id"}
        return beat(self.desk, member_id=self.id, member_epoch=epoch, **instance)

    def _take(self, response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        self.epoch = response.member_epoch
        self.full = {}
        if response.assignment is not None:
            self.target = owned(response)
            for topic, told in self.target.items():
                self.owned[topic] = self.owned.get(topic, set()) | told
        return response

    def has(self, topic: str) -> set[int]:
        return self.owned.get(topic_id(topic), set())


def settle(*members: Member, rounds: int = 6) -> None:
    """Heartbeats of all, so often that everybody has its target."""
    for _ in range(rounds):
        for member in members:
            member.beat()
