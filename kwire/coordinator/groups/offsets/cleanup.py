"""Removing offsets that have expired, and groups that are empty without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.records import offset_tombstone
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome

if TYPE_CHECKING:
    from kwire.coordinator.groups.group import Group
    from kwire.coordinator.groups.machine import GroupMachine

_AT_ONCE = 1000
"""Tombstones written at once: a batch has its limits, and so has the time that others may be kept waiting."""


def schedule_cleanup(machine: GroupMachine, now: Now) -> None:
    """The next clean-up is due after `offsets.retention.check.interval.ms`."""
    interval_ms = machine.config()["offsets.retention.check.interval.ms"]
    machine.deadlines.schedule(("cleanup",), now.ms + interval_ms, lambda now: _clean_up(machine, now))


def _clean_up(machine: GroupMachine, now: Now) -> Outcome[None]:
    records: list[CoordinatorRecord] = []
    for group in machine.groups.values():
        records += expired(machine, group, now)
        if len(records) >= _AT_ONCE:
            machine.deadlines.schedule(("cleanup",), now.ms, lambda now: _clean_up(machine, now))
            return Outcome(None, records[:_AT_ONCE])
    schedule_cleanup(machine, now)
    return Outcome(None, records)


def expired(machine: GroupMachine, group: Group, now: Now) -> list[CoordinatorRecord]:
    """Tombstones for what has expired of a group: for the group itself if nothing is left of it."""
    offsets, retention_ms = machine.offsets, machine.config()["offsets.retention.minutes"] * 60_000
    committed = offsets.of_group(group.id)
    expiration = group.offset_expiration()
    if committed and expiration is None:
        return []
    records = [
        offset_tombstone(group.id, partition)
        for partition, offset in committed
        if expiration is not None
        and not group.is_subscribed_to(partition[0])
        and expiration.has_expired(offset, now.wall_ms, retention_ms)
        and not offsets.is_pending(group.id, partition)
    ]
    if len(records) == len(committed) and group.is_empty and not offsets.open_transactions.get(group.id):
        records += group.tombstones()
    return records
