"""A member's next step towards its target assignment.

    Stable -------- partitions to let go of ----> UnrevokedPartitions     keeps its epoch until it has let go of them
       ^                                              |
       |                                              v  has let go
       '-- gets the last ones -- UnreleasedPartitions, or Stable         has the epoch of the target assignment

A step depends on what the member says it owns, on what others own, and on the target; it writes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kwire.coordinator.groups.consumer.member import (
    NOTHING_OWNED,
    ConsumerMember,
    EpochsByPartition,
    MemberState,
    Partitions,
)
from kwire.protocol.errors import ErrorCode, KafkaError

Owned = Mapping[bytes, Collection[int]]
"""What a member says it owns, by topic id."""


class Target(NamedTuple):
    """What a member shall have from an epoch on, and the ids of the topics that it subscribes to."""

    epoch: int
    partitions: Partitions
    subscribed: Collection[bytes]


def reconcile(
    member: ConsumerMember,
    target: Target,
    owned: Owned | None,
    is_taken: Callable[[bytes, int], bool],
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after its next step; the same one where there is none to take.

    `owned`: None where the member did not say. `is_taken(topic_id, partition)`: whether anybody, this member too, has
    the partition. With `subscription_changed` the member loses at once what it does not subscribe to any more. Raises
    FENCED_MEMBER_EPOCH for a member in a state of a later version.
    """
    if member.state is MemberState.STABLE:
        if member.epoch != target.epoch:
            return _next(member, target, owned, is_taken)
        return _drop_unsubscribed(member, target, owned) if subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if not _still_owns(owned, member.pending_revocation):
            return _next(member, target, owned, is_taken)
        return _drop_unsubscribed(member, target, owned) if subscription_changed else member
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _next(member, target, owned, is_taken)
    if owned is None or owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _next(member, target, owned, is_taken)


def _next(
    member: ConsumerMember, target: Target, owned: Owned | None, is_taken: Callable[[bytes, int], bool]
) -> ConsumerMember:
    kept: dict[bytes, Mapping[int, int]] = {}
    revoked: dict[bytes, Mapping[int, int]] = {}
    added: dict[bytes, dict[int, int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*target.partitions, *member.assigned)):
        wanted = target.partitions.get(topic_id, frozenset()) if topic_id in target.subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        stays = {index: epoch for index, epoch in has.items() if index in wanted}
        goes = {index: epoch for index, epoch in has.items() if index not in wanted}
        # What this member has yet to let go of is nobody else's: it may as well keep it.
        own = member.pending_revocation.get(topic_id, {})
        free = [
            index for index in sorted(wanted) if index not in stays and (index in own or not is_taken(topic_id, index))
        ]
        waits = waits or len(stays) + len(free) < len(wanted)
        if stays:
            kept[topic_id] = stays
        if goes:
            revoked[topic_id] = goes
        if free:
            added[topic_id] = dict.fromkeys(free, target.epoch)
    if revoked and _still_owns(owned, revoked):
        return member.at_epoch(member.epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    for topic_id, epochs in added.items():
        kept[topic_id] = dict(sorted({**kept.get(topic_id, {}), **epochs}.items()))
    return member.at_epoch(target.epoch)._replace(
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        assigned=kept,
        pending_revocation=NOTHING_OWNED,
    )


def _drop_unsubscribed(member: ConsumerMember, target: Target, owned: Owned | None) -> ConsumerMember:
    """Without the topics that it does not subscribe to any more; the target assignment follows later."""
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in target.subscribed}
    if len(kept) == len(member.assigned):
        return member
    pending = dict(member.pending_revocation)
    for topic_id, epochs in member.assigned.items():
        if topic_id not in kept:
            pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    updated = member.at_epoch(member.epoch)._replace(assigned=kept)
    if _still_owns(owned, pending):
        return updated._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=pending)
    return updated


def _still_owns(owned: Owned | None, revoked: EpochsByPartition) -> bool:
    """A member that does not say what it owns is taken to own everything."""
    if owned is None:
        return True
    return any(index in revoked.get(topic_id, {}) for topic_id, indexes in owned.items() for index in indexes)
