"""Who a request comes from: dynamic and static members, and the epoch that they must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import LEFT_STATIC, ConsumerMember
from kwire.coordinator.groups.consumer.reconciliation import Owned
from kwire.coordinator.groups.consumer.records import (
    current_assignment_record,
    member_record,
    member_tombstones,
    target_record,
)
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def check_room(machine: GroupMachine, group: ConsumerGroup, member_id: str) -> None:
    """Raises GROUP_MAX_SIZE_REACHED for who is not in yet, where the group is full."""
    most = machine.config()["group.consumer.max.size"]
    if len(group.members) >= most and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Raises FENCED_MEMBER_EPOCH, unless the member knows its epoch, or missed only the answer that told it."""
    if epoch in (0, member.epoch):
        return
    if epoch > member.epoch:
        than = "greater"
    elif epoch == member.previous_epoch and _has_no_more(owned, member):
        return
    else:
        than = "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {than} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _has_no_more(owned: Owned | None, member: ConsumerMember) -> bool:
    return owned is not None and all(
        topic_id in member.assigned and all(index in member.assigned[topic_id] for index in indexes)
        for topic_id, indexes in owned.items()
    )


def dynamic_member(group: ConsumerGroup, member_id: str, *, joins: bool) -> ConsumerMember:
    """The member; one not written yet where it joins. Raises UNKNOWN_MEMBER_ID."""
    if joins:
        return group.members.get(member_id) or ConsumerMember(member_id)
    return group.member(member_id)


def joining_static_member(draft: Draft, member_id: str, instance_id: str, *, classic: bool) -> ConsumerMember:
    """The member of that instance id under the member id it has now, with what it had; a new one where there is none.

    Raises UNRELEASED_INSTANCE_ID where the one before, like this one of the consumer protocol, has not left.
    """
    group = draft.group
    present = group.static_member(instance_id)
    if present is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not classic and present.classic is None and present.epoch != LEFT_STATIC:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {present.id} member.",
        )
    member = present._replace(id=member_id, epoch=0, previous_epoch=0)
    target = group.target_of(present.id)
    # The deadlines of the one before stay: they find nobody, or him if this is not written after all.
    draft.write(
        *member_tombstones(group.id, present.id),
        member_record(group.id, member),
        target_record(group.id, member_id, target),
        current_assignment_record(group.id, member),
    )
    return member


def known_static_member(group: ConsumerGroup, instance_id: str) -> ConsumerMember:
    """Raises UNKNOWN_MEMBER_ID."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member


def check_not_fenced(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    """Raises FENCED_INSTANCE_ID where the instance id is another member's by now."""
    if member.id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.",
        )
