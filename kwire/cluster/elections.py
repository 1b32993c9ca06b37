"""Who leads a partition: elections from the ISR, and what they do to the two epochs.

Every change of a partition's state raises its partition epoch by one; a new leader also raises the leader epoch by
one. Only a replica of the ISR is elected, so nothing acknowledged is lost; an unclean election takes any live replica
where `unclean.leader.election.enable` allows it, and the ISR becomes that replica alone.
All functions are pure; they give changes for `MetadataStore.commit`.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from enum import IntEnum

from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import NO_LEADER, MetadataImage, PartitionImage
from kwire.protocol.errors import ErrorCode, KafkaError


class Election(IntEnum):
    """How a leader is looked for. The first two numbers are those of the ElectLeaders request."""

    PREFERRED = 0
    """The first replica of the list if it is in the ISR, else as ONLINE."""
    UNCLEAN = 1
    """As ONLINE; with nobody live in the ISR, any live replica."""
    ONLINE = 2
    """The present leader if it still may lead, else the first live replica that is in the ISR."""


def live_brokers(image: MetadataImage) -> frozenset[int]:
    """Ids of the brokers that may lead: registered and not fenced."""
    return frozenset(broker.id for broker in image.brokers.values() if not broker.fenced)


def with_leader(partition: PartitionImage, leader: int, isr: tuple[int, ...] | None = None) -> PartitionImage:
    """The partition led by `leader` (NO_LEADER for none) from now on: both epochs are one higher."""
    return replace(
        partition,
        leader=leader,
        isr=partition.isr if isr is None else isr,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def elect(
    partition: PartitionImage,
    live: Container[int],
    election: Election = Election.ONLINE,
    isr: tuple[int, ...] | None = None,
) -> PartitionImage | None:
    """The partition after an election among `live` brokers with the in-sync replicas `isr` (as they are by default).

    None where nothing changes. An empty `isr` leaves the recorded one as it is: the last in-sync replicas are the only
    ones a later clean election may choose from.
    """
    eligible = partition.isr if isr is None else isr
    recorded = eligible or partition.isr
    leader, unclean = _choose(partition, live, election, eligible)
    if unclean:
        return with_leader(partition, leader, (leader,))
    if leader != partition.leader:
        return with_leader(partition, leader, recorded)
    if recorded != partition.isr:
        return replace(partition, isr=recorded, partition_epoch=partition.partition_epoch + 1)
    return None


def _choose(
    partition: PartitionImage, live: Container[int], election: Election, isr: tuple[int, ...]
) -> tuple[int, bool]:
    """(new leader or NO_LEADER, whether the election was unclean)."""

    def may_lead(broker: int) -> bool:
        return broker in isr and broker in live

    first = partition.replicas[0]
    if election is Election.PREFERRED and may_lead(first):
        return first, False
    if may_lead(partition.leader):
        return partition.leader, False
    for broker in partition.replicas:
        if may_lead(broker):
            return broker, False
    if election is Election.UNCLEAN:
        for broker in partition.replicas:
            if broker in live:
                return broker, True
    return NO_LEADER, False


def elect_leader(image: MetadataImage, topic: str, index: int, election: Election) -> PartitionChanged:
    """What an ElectLeaders request does to one partition.

    Raises UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE or
    ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    if topic not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = image.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
    needless = partition.replicas[0] == partition.leader if election is Election.PREFERRED else partition.leader >= 0
    if needless:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    elected = elect(partition, live_brokers(image), election)
    if elected is None or elected.leader == NO_LEADER:
        if election is Election.PREFERRED:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return PartitionChanged(topic, index, elected)


def broker_lost(image: MetadataImage, broker: int, unclean: Callable[[str], bool]) -> list[PartitionChanged]:
    """What becomes of the partitions of a broker that is fenced or gone: it leaves every ISR and every leadership.

    `unclean(topic)` is the topic's `unclean.leader.election.enable`.
    """
    live = live_brokers(image) - {broker}
    changes = []
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if broker in partition.isr or broker == partition.leader:
                isr = tuple(replica for replica in partition.isr if replica != broker)
                changed = elect(partition, live, Election.UNCLEAN if unclean(topic.name) else Election.ONLINE, isr)
                if changed is not None:
                    changes.append(PartitionChanged(topic.name, index, changed))
    return changes


def broker_back(image: MetadataImage, broker: int, unclean: Callable[[str], bool]) -> list[PartitionChanged]:
    """What a broker's return does: the partitions without a leader that it may lead get one."""
    live = live_brokers(image) | {broker}
    changes = []
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader == NO_LEADER and broker in partition.replicas:
                changed = elect(partition, live, Election.UNCLEAN if unclean(topic.name) else Election.ONLINE)
                if changed is not None:
                    changes.append(PartitionChanged(topic.name, index, changed))
    return changes
