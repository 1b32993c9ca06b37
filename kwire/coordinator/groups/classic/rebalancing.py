"""What starts and what completes a rebalance of a classic group, and the sessions that expire.

The functions give the outcome to append, without a response: None where there is nothing to append.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.member import ClassicMember
from kwire.coordinator.groups.classic.records import group_record
from kwire.coordinator.runtime.outcome import Now, Outcome, Pending
from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""So long may a JoinGroup of a new member wait. It has no id to heartbeat with, and while it waits nobody sees whether
its client has gone, so that retries would pile up as members in an endless rebalance."""

LEAST_WAIT_MS = 100
"""Between two looks whether a static member has come back, where the members ask for less time than that, or none: it
would be looked without end."""

_CAN_REBALANCE = (ClassicState.EMPTY, ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)
_ASSIGNED = (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)

T = TypeVar("T")

Done = Outcome[None] | None


def with_response(response: T | Pending[T], done: Done) -> Outcome[T]:
    """What was done, with the response to who brought it about."""
    if done is None:
        return Outcome(response)
    return Outcome(response, done.records, replay=done.replay, committed=done.committed, failed=done.failed)


def rebalance_or_complete(machine: GroupMachine, group: ClassicGroup, now: Now, reason: str) -> Done:
    """Starts a rebalance, or where one is under way sees whether it is complete now."""
    if group.state in _CAN_REBALANCE:
        return prepare_rebalance(machine, group, now, reason)
    return complete_if_all_joined(machine, group, now)


def prepare_rebalance(machine: GroupMachine, group: ClassicGroup, now: Now, reason: str) -> Done:
    """Starts a rebalance: whoever awaits an assignment is told to join again."""
    logger.info("rebalance group=%r generation=%d reason=%r", group.id, group.generation, reason)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        fail_assignment(machine, group, ErrorCode.REBALANCE_IN_PROGRESS, now)
    group.pending_syncs.clear()
    machine.deadlines.cancel(("sync", group.id))
    first = group.state is ClassicState.EMPTY
    group.become(ClassicState.PREPARING_REBALANCE, now.wall_ms)
    if first:
        delay_ms = machine.config()["group.initial.rebalance.delay.ms"]
        _await_more(machine, group.id, now, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        return None
    _await_all(machine, group, now, group.rebalance_timeout_ms)
    return complete_if_all_joined(machine, group, now)


def _await_more(machine: GroupMachine, group_id: str, now: Now, delay_ms: int, left_ms: int) -> None:
    """Gives a new group's other members `delay_ms` to come; each time one comes, again, for `left_ms` in all."""

    def over(now: Now) -> Done:
        group = classic_group(machine, group_id)
        if group is None:
            return None
        if group.new_member_added and left_ms:
            group.new_member_added = False
            delay = machine.config()["group.initial.rebalance.delay.ms"]
            _await_more(machine, group_id, now, min(delay, left_ms), max(left_ms - delay_ms, 0))
            return None
        return complete_join(machine, group, now)

    machine.deadlines.schedule(("join", group_id), now.ms + delay_ms, over)


def _await_all(machine: GroupMachine, group: ClassicGroup, now: Now, timeout_ms: int) -> None:
    """Gives the members so long to join again."""

    def over(now: Now) -> Done:
        group = classic_group(machine, group_id)
        return None if group is None else complete_join(machine, group, now)

    group_id = group.id
    machine.deadlines.schedule(("join", group_id), now.ms + timeout_ms, over)


def complete_if_all_joined(machine: GroupMachine, group: ClassicGroup, now: Now) -> Done:
    if (
        group.state is ClassicState.PREPARING_REBALANCE
        and group.previous_state is not ClassicState.EMPTY  # whose delay is waited for
        and group.all_joined
    ):
        return complete_join(machine, group, now)
    return None


def complete_join(machine: GroupMachine, group: ClassicGroup, now: Now) -> Done:
    """The time to join is over, or all have: those who joined, and static members, are the next generation."""
    machine.deadlines.cancel(("join", group.id))
    for member in list(group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            group.remove(member.id)
            end_session(machine, group, member.id)
    if not group.elect_joined_leader() and group.members:
        # Static members only, none of them back yet: their sessions decide.
        _await_all(machine, group, now, max(group.rebalance_timeout_ms, LEAST_WAIT_MS))
        return None
    group.begin_generation(now.wall_ms)
    if not group.members:
        return Outcome(None, [group_record(group, {})], replay=False)
    for member in group.members.values():
        group.answer_join(member)
        begin_session(machine, group, member, now)
        member.is_new = False
        group.pending_syncs.add(member.id)
    _await_syncs(machine, group, now)
    return None


def _await_syncs(machine: GroupMachine, group: ClassicGroup, now: Now) -> None:
    """Gives the members the rebalance time-out to ask for their assignments; who does not is out."""

    def over(now: Now) -> Done:
        group = classic_group(machine, group_id)
        if group is None or group.generation != generation or group.state not in _ASSIGNED or not group.pending_syncs:
            return None
        for member_id in list(group.pending_syncs):
            group.remove(member_id)
            end_session(machine, group, member_id)
        return prepare_rebalance(machine, group, now, "members did not sync in time")

    group_id, generation = group.id, group.generation
    machine.deadlines.schedule(("sync", group_id), now.ms + group.rebalance_timeout_ms, over)


def has_synced(machine: GroupMachine, group: ClassicGroup, member_id: str) -> None:
    """The member has asked for its assignment."""
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        machine.deadlines.cancel(("sync", group.id))


def give_assignment(machine: GroupMachine, group: ClassicGroup, assignment: dict[str, bytes], now: Now) -> None:
    """Answers everybody who awaits an assignment."""
    for member in group.members.values():
        member.assignment = assignment.get(member.id, b"")
        if group.answer_sync(member):
            begin_session(machine, group, member, now)


def fail_assignment(machine: GroupMachine, group: ClassicGroup, code: ErrorCode, now: Now) -> None:
    """Answers everybody who awaits an assignment with an error; nobody has one any more."""
    for member in group.members.values():
        member.assignment = b""
        if member.awaiting_sync is not None:
            group.answer_sync_with(member, code)
            begin_session(machine, group, member, now)


# Sessions


def begin_session(machine: GroupMachine, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
    """The member is alive: its session time-out begins anew."""
    _expire_at(machine, group.id, member.id, now.ms + member.session_timeout_ms)


def begin_join_session(machine: GroupMachine, group: ClassicGroup, member: ClassicMember, now: Now) -> None:
    """The same for a new member, which cannot heartbeat before it is told its id."""
    _expire_at(machine, group.id, member.id, now.ms + NEW_MEMBER_JOIN_TIMEOUT_MS)


def begin_pending_session(machine: GroupMachine, group: ClassicGroup, member_id: str, at_ms: int) -> None:
    """A client was given an id, and has until `at_ms` to join with it."""
    _expire_at(machine, group.id, member_id, at_ms)


def end_session(machine: GroupMachine, group: ClassicGroup, member_id: str) -> None:
    machine.deadlines.cancel(("session", group.id, member_id))


def begin_sessions(machine: GroupMachine, group: ClassicGroup, now: Now) -> None:
    """After loading: all members are taken for alive; a group that is too large now rebalances."""
    for member in group.members.values():
        begin_session(machine, group, member, now)
    if len(group.members) > machine.config()["group.max.size"]:
        prepare_rebalance(machine, group, now, "the group is larger than group.max.size")


def _expire_at(machine: GroupMachine, group_id: str, member_id: str, at_ms: int) -> None:
    def expired(now: Now) -> Done:
        group = classic_group(machine, group_id)
        if group is None:
            return None
        if member_id in group.pending_members:
            return forget_pending(machine, group, member_id, now)
        member = group.members.get(member_id)
        if member is None or (member.is_waiting and not member.is_new):
            return None
        return remove_member(machine, group, member, now, "a member's session expired")

    machine.deadlines.schedule(("session", group_id, member_id), at_ms, expired)


def forget_pending(machine: GroupMachine, group: ClassicGroup, member_id: str, now: Now) -> Done:
    """Who was given an id does not join."""
    group.pending_members.discard(member_id)
    return _complete_without_waiting(machine, group, now)


def remove_member(machine: GroupMachine, group: ClassicGroup, member: ClassicMember, now: Now, reason: str) -> Done:
    """Takes a member out; the others rebalance."""
    drop_member(machine, group, member)
    if group.state in _ASSIGNED:
        return prepare_rebalance(machine, group, now, reason)
    return _complete_without_waiting(machine, group, now)


def _complete_without_waiting(machine: GroupMachine, group: ClassicGroup, now: Now) -> Done:
    """Somebody is gone. If all others have joined the rebalance is complete, even where a first one has time left."""
    if group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
        return complete_join(machine, group, now)
    return None


def drop_member(machine: GroupMachine, group: ClassicGroup, member: ClassicMember) -> None:
    """Takes a member out and ends what it waits for, without looking at the others."""
    group.answer_join_with(member, ErrorCode.UNKNOWN_MEMBER_ID, "")
    group.answer_sync_with(member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.id)
    end_session(machine, group, member.id)


def end_deadlines(machine: GroupMachine, group: ClassicGroup) -> None:
    """The group is gone: nothing of it falls due any more."""
    machine.deadlines.cancel(("join", group.id))
    machine.deadlines.cancel(("sync", group.id))
    for member_id in (*group.members, *group.pending_members):
        end_session(machine, group, member_id)


def classic_group(machine: GroupMachine, group_id: str) -> ClassicGroup | None:
    """The classic group of that id, if there is one."""
    group = machine.groups.get(group_id)
    return group if isinstance(group, ClassicGroup) else None
