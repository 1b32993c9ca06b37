"""Members that leave by themselves, or are fenced."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from kwire.coordinator.groups.consumer import sessions
from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import LEFT_STATIC, NOTHING_OWNED, ConsumerMember
from kwire.coordinator.groups.consumer.membership import check_not_fenced, known_static_member
from kwire.coordinator.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
)
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

T = TypeVar("T")

logger = logging.getLogger(__name__)


def leave(
    machine: GroupMachine, request: ConsumerGroupHeartbeatRequest, now: Now
) -> Outcome[ConsumerGroupHeartbeatResponse]:
    """A heartbeat of epoch -1, or -2 of a static member that will be back.

    Raises GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = consumer_group(machine, request.group_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = known_static_member(group, request.instance_id)
        check_not_fenced(member, request.member_id, request.instance_id)
        if request.member_epoch == LEFT_STATIC:
            response.member_id = member.id
            return Outcome(response, [current_assignment_record(group.id, _paused(member))])
    logger.info("member leaves group=%r member=%r", group.id, member.id)
    return fence_members(machine, group.id, [member], response, now)


def _paused(member: ConsumerMember) -> ConsumerMember:
    """A static member while it is away: its partitions wait for it. What it commits under its old id is refused."""
    return member._replace(
        epoch=LEFT_STATIC,
        pending_revocation=NOTHING_OWNED,
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
    )


def fence_members(
    machine: GroupMachine, group_id: str, members: Sequence[ConsumerMember], response: T, now: Now
) -> Outcome[T]:
    """Takes members out of a group, which begins an epoch.

    Where only members of the classic protocol are left, it becomes a classic group. Members whose end can't be written
    have another session.
    """
    from kwire.coordinator.groups.consumer.migration import downgrade_without, may_downgrade_without

    if not members:
        return Outcome(response)
    group = consumer_group(machine, group_id)
    if may_downgrade_without(machine, group, members):
        return downgrade_without(machine, group, members, response, now)
    with Draft(machine, group_id) as draft:
        for member in members:
            draft.write(*member_tombstones(group_id, member.id))
        for regex in sorted({member.topic_regex for member in members if member.topic_regex}):
            if not group.regex_members[regex]:
                draft.write(regex_tombstone(group_id, regex))
        metadata_hash = machine.topic_hashes.of_group(group.subscribed_topics(), machine.image())
        draft.write(epoch_record(group_id, group.epochs.group + 1, metadata_hash))
    for member in members:
        sessions.end_all(machine, group_id, member.id)

    def failed(error: KafkaError, now: Now) -> None:
        for member in members:
            timeout_ms = None if member.classic is None else member.classic.session_timeout_ms
            sessions.begin_session(machine, group_id, member.id, now, timeout_ms)

    return Outcome(response, draft.records, failed=failed)


def consumer_group(machine: GroupMachine, group_id: str) -> ConsumerGroup:
    """Raises GROUP_ID_NOT_FOUND where there is no consumer group of that id."""
    group = machine.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group
