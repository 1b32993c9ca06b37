"""SyncGroup (key 14): the leader hands in the assignment, every member gets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.rebalancing import (
    fail_assignment,
    give_assignment,
    has_synced,
    rebalance_or_complete,
)
from kwire.coordinator.groups.classic.records import group_record
from kwire.coordinator.groups.errors import as_group_error
from kwire.coordinator.runtime.outcome import Now, Outcome, Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def sync(machine: GroupMachine, group: ClassicGroup, request: SyncGroupRequest, now: Now) -> Outcome[SyncGroupResponse]:
    """The member's assignment, once the leader has handed it in and it is stored.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
    """
    _check(group, request)
    member = group.members[request.member_id]
    if group.state is ClassicState.STABLE:
        has_synced(machine, group, member.id)
        return Outcome(group.synced(member))
    group.answer_sync_with(member, ErrorCode.REBALANCE_IN_PROGRESS)
    waiting: Pending[SyncGroupResponse] = Pending()
    member.awaiting_sync = waiting
    has_synced(machine, group, member.id)
    if member.id != group.leader:
        return Outcome(waiting)
    handed_in = {given.member_id: bytes(given.assignment) for given in request.assignments}
    assignment = {member_id: handed_in.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def committed(now: Now) -> None:
        if _still(group, generation):
            give_assignment(machine, group, assignment, now)
            group.become(ClassicState.STABLE, now.wall_ms)

    def failed(error: KafkaError, now: Now) -> None:
        if _still(group, generation):
            fail_assignment(machine, group, as_group_error(error).code, now)
            rebalance_or_complete(machine, group, now, "the assignment could not be stored")

    return Outcome(waiting, [group_record(group, assignment)], replay=False, committed=committed, failed=failed)


def _check(group: ClassicGroup, request: SyncGroupRequest) -> None:
    group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    for said, is_so in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name)):
        if said is not None and is_so is not None and said != is_so:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is ClassicState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def _still(group: ClassicGroup, generation: int) -> bool:
    """Whether nobody joined while the assignment was being stored."""
    return group.state is ClassicState.COMPLETING_REBALANCE and group.generation == generation
