"""Members that fall silent, or do not let go of partitions in time, are fenced."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import ConsumerMember, MemberState
from kwire.coordinator.groups.consumer.settings import session_timeout_ms
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

logger = logging.getLogger(__name__)

RETRY_MS = 500
"""After so long a member is fenced again, where it could not be written that it is."""

_KINDS = ("session", "rebalance", "join", "sync")


def begin_session(
    machine: GroupMachine, group_id: str, member_id: str, now: Now, timeout_ms: int | None = None
) -> None:
    """The member is alive. `timeout_ms`: of a member of the classic protocol, which brings its own."""
    if timeout_ms is None:
        timeout_ms = session_timeout_ms(machine, group_id)
    _fence_at(machine, "session", group_id, member_id, now.ms + timeout_ms)


def begin_revocation(machine: GroupMachine, group_id: str, member: ConsumerMember, now: Now) -> None:
    """The member has its rebalance time-out to let go of partitions, and get on to another epoch."""
    _fence_at(machine, "rebalance", group_id, member.id, now.ms + member.rebalance_timeout_ms, member.epoch)


def end_revocation(machine: GroupMachine, group_id: str, member_id: str) -> None:
    _end(machine, "rebalance", group_id, member_id)


def begin_join(machine: GroupMachine, group_id: str, member: ConsumerMember, now: Now) -> None:
    """A member of the classic protocol was told to join again; it has its rebalance time-out from the first time on."""
    if _key("join", group_id, member.id) not in machine.deadlines:
        _fence_at(machine, "join", group_id, member.id, now.ms + member.rebalance_timeout_ms)


def end_join(machine: GroupMachine, group_id: str, member_id: str) -> None:
    _end(machine, "join", group_id, member_id)


def begin_sync(machine: GroupMachine, group_id: str, member_id: str, timeout_ms: int, now: Now) -> None:
    """A member of the classic protocol has joined, and now must ask for its assignment."""
    _fence_at(machine, "sync", group_id, member_id, now.ms + timeout_ms)


def end_sync(machine: GroupMachine, group_id: str, member_id: str) -> None:
    _end(machine, "sync", group_id, member_id)


def end_all(machine: GroupMachine, group_id: str, member_id: str) -> None:
    """The member is gone."""
    for kind in _KINDS:
        _end(machine, kind, group_id, member_id)


def begin_sessions(machine: GroupMachine, group: ConsumerGroup, now: Now) -> None:
    """After loading: all members are taken for alive."""
    for member in group.members.values():
        begin_session(machine, group.id, member.id, now)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            begin_revocation(machine, group.id, member, now)


def _key(kind: str, group_id: str, member_id: str) -> tuple[str, str, str, str]:
    """Not that of a classic group, whose deadlines stay until it is certain that it is a consumer group now."""
    return "consumer", kind, group_id, member_id


def _end(machine: GroupMachine, kind: str, group_id: str, member_id: str) -> None:
    machine.deadlines.cancel(_key(kind, group_id, member_id))


def _fence_at(
    machine: GroupMachine, kind: str, group_id: str, member_id: str, at_ms: int, epoch: int | None = None
) -> None:
    """`epoch`: the member is fenced only if it still is in that one."""

    def over(now: Now) -> Outcome[Any] | None:
        from kwire.coordinator.groups.consumer.leaving import fence_members

        group = machine.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or (epoch is not None and member.epoch != epoch):
            return None
        logger.info("member fenced group=%r member=%r timeout=%s", group_id, member_id, kind)
        outcome: Outcome[Any] = fence_members(machine, group_id, [member], None, now)
        undo = outcome.failed

        def failed(error: KafkaError, now: Now) -> None:
            if undo is not None:
                undo(error, now)
            _fence_at(machine, kind, group_id, member_id, now.ms + RETRY_MS, epoch)

        outcome.failed = failed
        return outcome

    machine.deadlines.schedule(_key(kind, group_id, member_id), at_ms, over)
