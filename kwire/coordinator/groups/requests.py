"""The requests of members, for groups of either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.config.broker import BrokerConfig
from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.classic import joining, leaving, syncing
from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.groups.consumer import classic_members, migration
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kwire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

_MANY_LEAVE_FROM = 3
"""The first version of LeaveGroup in which several members leave at once."""


# What is wrong with a request, whoever coordinates the group


def check_group_id(group_id: str) -> None:
    """Raises INVALID_GROUP_ID for an empty one."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def check_join(config: BrokerConfig, request: JoinGroupRequest) -> None:
    """Raises INVALID_GROUP_ID, and INVALID_SESSION_TIMEOUT for one that is too short or too long."""
    check_group_id(request.group_id)
    shortest, longest = config["group.min.session.timeout.ms"], config["group.max.session.timeout.ms"]
    if not shortest <= request.session_timeout_ms <= longest:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


# What the coordinator does


def join(machine: GroupMachine, caller: Caller, request: JoinGroupRequest, now: Now) -> Outcome[JoinGroupResponse]:
    """See `classic.joining.join` and `consumer.classic_members.join`."""
    if not caller.api_version:  # which has no rebalance timeout
        request.rebalance_timeout_ms = request.session_timeout_ms
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        return joining.join(machine, caller, request, now)
    if not group.is_empty:
        return classic_members.join(machine, group, caller, request, now)
    if request.member_id:
        return joining.refused(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
    return migration.give_way(machine, group, lambda: joining.join(machine, caller, request, now))


def sync(machine: GroupMachine, request: SyncGroupRequest, now: Now) -> Outcome[SyncGroupResponse]:
    """See `classic.syncing.sync`, `consumer.classic_members.sync`. UNKNOWN_MEMBER_ID where there is no such group."""
    group = _known(machine, request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.sync(machine, group, request, now)
    return syncing.sync(machine, group, request, now)


def heartbeat(machine: GroupMachine, request: HeartbeatRequest, now: Now) -> Outcome[HeartbeatResponse]:
    """See `classic.leaving.heartbeat`. UNKNOWN_MEMBER_ID where there is no such group."""
    group = _known(machine, request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.heartbeat(machine, group, request, now)
    return leaving.heartbeat(machine, group, request, now)


def leave(machine: GroupMachine, caller: Caller, request: LeaveGroupRequest, now: Now) -> Outcome[LeaveGroupResponse]:
    """See `classic.leaving.leave`. Where there is no such group, no member is known."""
    identities = request.members
    if caller.api_version < _MANY_LEAVE_FROM:
        identities = [MemberIdentity(member_id=request.member_id)]
    group = machine.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        outcome = leaving.leave(machine, group, identities, now)
    elif isinstance(group, ConsumerGroup):
        outcome = classic_members.leave(machine, group, identities, now)
    else:
        outcome = Outcome(LeaveGroupResponse(members=[_unknown(identity) for identity in identities]))
    response = outcome.response
    if caller.api_version < _MANY_LEAVE_FROM and isinstance(response, LeaveGroupResponse):
        response.error_code = response.members[0].error_code
        response.members = []
    return outcome


def _unknown(identity: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )


def _known(machine: GroupMachine, group_id: str) -> ClassicGroup | ConsumerGroup:
    group = machine.groups.get(group_id)
    if not isinstance(group, ClassicGroup | ConsumerGroup):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return group
