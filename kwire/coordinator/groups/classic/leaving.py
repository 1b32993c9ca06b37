"""Heartbeat (key 12) and LeaveGroup (key 13) of a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.rebalancing import (
    begin_session,
    drop_member,
    end_session,
    rebalance_or_complete,
    with_response,
)
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kwire.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def heartbeat(
    machine: GroupMachine, group: ClassicGroup, request: HeartbeatRequest, now: Now
) -> Outcome[HeartbeatResponse]:
    """Prolongs the member's session; REBALANCE_IN_PROGRESS tells it to join again.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    begin_session(machine, group, group.members[request.member_id], now)
    preparing = group.state is ClassicState.PREPARING_REBALANCE
    return Outcome(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE))


def leave(
    machine: GroupMachine, group: ClassicGroup, leaving: list[MemberIdentity], now: Now
) -> Outcome[LeaveGroupResponse]:
    """An answer for each member; those of a static id alone are removed by an admin."""
    answers = []
    for identity in leaving:
        try:
            _leave(machine, group, identity)
            code = ErrorCode.NONE
        except KafkaError as error:
            code = error.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    response = LeaveGroupResponse(members=answers)
    if group.state is ClassicState.EMPTY or all(answer.error_code for answer in answers):
        return Outcome(response)
    return with_response(response, rebalance_or_complete(machine, group, now, "members left"))


def _leave(machine: GroupMachine, group: ClassicGroup, identity: MemberIdentity) -> None:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        found = None if instance_id is None else group.static_members.get(instance_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id = found
    elif member_id in group.pending_members:
        group.pending_members.discard(member_id)
        end_session(machine, group, member_id)
        return
    else:
        group.check_member(member_id, instance_id)
    drop_member(machine, group, group.members[member_id])
