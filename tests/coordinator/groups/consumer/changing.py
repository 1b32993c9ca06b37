"""Groups of the classic protocol whose members can change over to the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.consumer_protocol.serde import decode
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.consumer_protocol.subscription import TopicPartition as OwnedPartition
from kwire.protocol.errors import ErrorCode
from kwire.protocol.version_prefixed import encode_version_prefixed
from tests.coordinator.groups.classic.members import Member as Classic
from tests.coordinator.groups.desk import Desk


def subscription(*topics: str, owned: Iterable[int] = ()) -> bytes:
    owns = [OwnedPartition(topic="t", partitions=sorted(owned))]
    return encode_version_prefixed(ConsumerProtocolSubscription(topics=list(topics), owned_partitions=owns), 1)


def assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    topics = [TopicPartition(topic="t", partitions=list(partitions))]
    return encode_version_prefixed(ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data), 1)


def told(data: bytes) -> set[int]:
    """The partitions of an assignment."""
    topics = decode(ConsumerProtocolAssignment, data).assigned_partitions
    return {index for topic in topics for index in topic.partitions}


class Reader(Classic):
    """A consumer of the classic protocol that reads t, and lets go of what it is told to when it joins again."""

    has: frozenset[int] = frozenset()

    def rejoin(self) -> None:
        self.join(subscription("t", owned=self.has))
        self.take()

    def take(self) -> None:
        answer = self.sync()
        assert answer is not None
        self.has = frozenset(told(bytes(answer.assignment)))

    def go_on(self) -> None:
        """A heartbeat, and what follows from it."""
        if self.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()


def classic_group(at: Desk, *members: Reader, partitions: int = 4) -> None:
    """A stable group of these, the partitions shared in turn."""
    first, *others = members
    first.join(subscription("t"))
    at.settle()
    assert first.joined() is not None
    for member in others:
        member.join(subscription("t"))
    if others:
        first.join(subscription("t"))
    shares = {member.id: assignment(*range(place, partitions, len(members))) for place, member in enumerate(members)}
    for member in others:
        assert member.joined() is not None
        member.sync()
    answer = first.sync(shares)
    assert answer is not None
    for member in members:
        if member is not first:
            assert member.synced() is not None
        member.has = frozenset(told(shares[member.id]))
