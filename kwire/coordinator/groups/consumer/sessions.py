"""Members that fall silent, or do not let go of partitions in time, are fenced."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import ConsumerMember, MemberState
from kwire.coordinator.groups.consumer.settings import session_timeout_ms
from kwire.coordinator.runtime.outcome import Now, Outcome

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

logger = logging.getLogger(__name__)


def begin_session(
    machine: GroupMachine, group_id: str, member_id: str, now: Now, timeout_ms: int | None = None
) -> None:
    """The member is alive. `timeout_ms`: of a member of the classic protocol, which brings its own."""
    if timeout_ms is None:
        timeout_ms = session_timeout_ms(machine, group_id)
    _fence_at(machine, "session", group_id, member_id, now.ms + timeout_ms)


def begin_revocation(machine: GroupMachine, group_id: str, member: ConsumerMember, now: Now) -> None:
    """The member has its rebalance time-out to let go of partitions, and get on to another epoch."""
    member_id, epoch = member.id, member.epoch

    def over(now: Now) -> Outcome[Any] | None:
        found = _member(machine, group_id, member_id)
        return None if found is None or found.epoch != epoch else _fence(machine, group_id, member_id, now, "rebalance")

    machine.deadlines.schedule(("rebalance", group_id, member_id), now.ms + member.rebalance_timeout_ms, over)


def end_revocation(machine: GroupMachine, group_id: str, member_id: str) -> None:
    machine.deadlines.cancel(("rebalance", group_id, member_id))


def begin_join(machine: GroupMachine, group_id: str, member: ConsumerMember, now: Now) -> None:
    """A member of the classic protocol was told to join again; it has its rebalance time-out from the first time on."""
    if ("join", group_id, member.id) not in machine.deadlines:
        _fence_at(machine, "join", group_id, member.id, now.ms + member.rebalance_timeout_ms)


def end_join(machine: GroupMachine, group_id: str, member_id: str) -> None:
    machine.deadlines.cancel(("join", group_id, member_id))


def begin_sync(machine: GroupMachine, group_id: str, member_id: str, timeout_ms: int, now: Now) -> None:
    """A member of the classic protocol has joined, and now must ask for its assignment."""
    _fence_at(machine, "sync", group_id, member_id, now.ms + timeout_ms)


def end_sync(machine: GroupMachine, group_id: str, member_id: str) -> None:
    machine.deadlines.cancel(("sync", group_id, member_id))


def end_all(machine: GroupMachine, group_id: str, member_id: str) -> None:
    """The member is gone."""
    for kind in ("session", "rebalance", "join", "sync"):
        machine.deadlines.cancel((kind, group_id, member_id))


def begin_sessions(machine: GroupMachine, group: ConsumerGroup, now: Now) -> None:
    """After loading: all members are taken for alive."""
    for member in group.members.values():
        begin_session(machine, group.id, member.id, now)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            begin_revocation(machine, group.id, member, now)


def _fence_at(machine: GroupMachine, kind: str, group_id: str, member_id: str, at_ms: int) -> None:
    machine.deadlines.schedule(
        (kind, group_id, member_id), at_ms, lambda now: _fence(machine, group_id, member_id, now, kind)
    )


def _fence(machine: GroupMachine, group_id: str, member_id: str, now: Now, timeout: str) -> Outcome[Any] | None:
    from kwire.coordinator.groups.consumer.leaving import fence_members

    member = _member(machine, group_id, member_id)
    if member is None:
        return None
    logger.info("member fenced group=%r member=%r timeout=%s", group_id, member_id, timeout)
    return fence_members(machine, group_id, [member], None, now)


def _member(machine: GroupMachine, group_id: str, member_id: str) -> ConsumerMember | None:
    group = machine.groups.get(group_id)
    return group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
