"""What a client knows of the cluster: brokers, topics, and who leads each partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.addresses import Address
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.uuids import ZERO

if TYPE_CHECKING:
    from kwire.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


class Partition(NamedTuple):
    """One partition as Metadata describes it. `leader` is -1 while there is none."""

    index: int  # type: ignore[assignment]  # a tuple's method of that name is not missed
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


class Topic(NamedTuple):
    """One topic; `partitions` by number. The id is zero where the broker is too old to tell (before Kafka 2.8)."""

    name: str
    id: bytes
    internal: bool
    partitions: dict[int, Partition]


class ClusterMetadata:
    """What Metadata responses said, the latest of each topic."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller: int = -1
        self.brokers: dict[int, Address] = {}
        self.topics: dict[str, Topic] = {}
        self.errors: dict[str, KafkaError] = {}
        """Why a topic that was asked for is not in `topics`."""

    def update(self, response: MetadataResponse, *, all_topics: bool = False) -> None:
        """Takes a response in; with `all_topics` there are no topics but those in it.

        KafkaError if the whole request failed.
        """
        check(response.error_code)
        if all_topics:
            self.topics.clear()
            self.errors.clear()
        self.cluster_id = response.cluster_id
        self.controller = response.controller_id
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        for described in response.topics:
            if described.name is None:
                continue
            if described.error_code:
                self.topics.pop(described.name, None)
                self.errors[described.name] = error_of(described.error_code, f"topic {described.name!r}")
            else:
                self.topics[described.name] = _topic(described)
                self.errors.pop(described.name, None)

    def leader(self, topic: str, partition: int) -> int:
        """The leader's id. KafkaError: the topic's error, UNKNOWN_TOPIC_OR_PARTITION, or LEADER_NOT_AVAILABLE."""
        found = self.topic(topic).partitions.get(partition)
        if found is None:
            raise unknown_partition(topic, partition)
        if found.leader not in self.brokers:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader now")
        return found.leader

    def topic(self, name: str) -> Topic:
        """KafkaError where it is not known."""
        if name in self.topics:
            return self.topics[name]
        raise self.errors.get(name) or unknown_topic(name)

    def topic_id(self, name: str) -> bytes:
        topic = self.topics.get(name)
        return topic.id if topic else ZERO

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id, None where no known topic has it."""
        return next((topic.name for topic in self.topics.values() if topic.id == topic_id), None)

    def have_ids(self, names: Iterable[str]) -> bool:
        """Whether the ids of all these topics are known."""
        return all(self.topic_id(name) != ZERO for name in names)


def error_of(code: int, what: str | None = None) -> KafkaError:
    """The error a response names by its code."""
    try:
        return KafkaError(ErrorCode(code), what)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"error {code}" + (f", {what}" if what else ""))


def check(code: int, what: str | None = None) -> None:
    """Raises the error of a code other than 0."""
    if code:
        raise error_of(code, what)


def unknown_topic(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")


def unknown_partition(topic: str, partition: int) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} of topic {topic!r}")


def _topic(described: MetadataResponseTopic) -> Topic:
    partitions = {
        item.partition_index: Partition(
            item.partition_index,
            item.leader_id,
            item.leader_epoch,
            list(item.replica_nodes),
            list(item.isr_nodes),
            list(item.offline_replicas),
        )
        for item in sorted(described.partitions, key=lambda item: item.partition_index)
    }
    return Topic(str(described.name), described.topic_id, described.is_internal, partitions)
