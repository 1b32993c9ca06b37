"""A member of a consumer group. Immutable: a change makes another one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic without partitions. Not to be changed."""

EpochsByPartition = Mapping[bytes, Mapping[int, int]]
"""The same with the epoch in which the member got each partition (KIP-1251). Not to be changed."""

NO_PARTITIONS: Partitions = {}
NOTHING_OWNED: EpochsByPartition = {}

LEFT = -1
"""The epoch with which a member leaves."""

LEFT_STATIC = -2
"""The epoch with which a static member leaves that means to come back within its session."""


class MemberState(IntEnum):
    """How far a member has come towards its target assignment; the numbers are those of the record."""

    UNKNOWN = 127
    """Written by a later version."""
    STABLE = 0
    """It has its target."""
    UNREVOKED_PARTITIONS = 1
    """It has yet to let go of partitions, and stays in its epoch until then."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have yet to let go of."""

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


class ClassicProtocol(NamedTuple):
    """A client-side assignor's name and the member's subscription for it (`ConsumerProtocolSubscription`)."""

    name: str
    metadata: bytes


class ClassicMetadata(NamedTuple):
    """What only a member of the classic protocol has."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


class ConsumerMember(NamedTuple):
    """A member. `rebalance_timeout_ms`: so long it may take to let go of partitions."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    """A regular expression, besides the names; none if empty."""
    assignor: str | None = None
    """The server-side assignor it would like."""
    state: MemberState = MemberState.STABLE
    assigned: EpochsByPartition = NOTHING_OWNED
    """What it may read."""
    pending_revocation: EpochsByPartition = NOTHING_OWNED
    """What it must let go of and has not yet; nobody else gets it before."""
    classic: ClassicMetadata | None = None
    """Set for a member of the classic protocol."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it has all of its target assignment, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def at_epoch(self, epoch: int) -> ConsumerMember:
        """The same in another epoch, with the one before as the previous."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which it got the partition; None where it does not have it."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def with_epoch(partitions: Partitions, epoch: int) -> EpochsByPartition:
    """The partitions as got in this epoch."""
    return {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in partitions.items()}


def without_epochs(owned: EpochsByPartition) -> Partitions:
    return {topic_id: frozenset(epochs) for topic_id, epochs in owned.items()}
