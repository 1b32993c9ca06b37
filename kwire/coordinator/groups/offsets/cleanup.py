"""Removing offsets that have expired, and groups that are empty without them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.portions import portion
from kwire.coordinator.groups.offsets.records import offset_tombstone
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome

if TYPE_CHECKING:
    from kwire.coordinator.groups.group import Group
    from kwire.coordinator.groups.machine import GroupMachine


def schedule_cleanup(machine: GroupMachine, now: Now) -> None:
    """The next clean-up is due after `offsets.retention.check.interval.ms`."""
    _schedule(machine, now.ms + machine.config()["offsets.retention.check.interval.ms"])


def _schedule(machine: GroupMachine, at_ms: int) -> None:
    machine.deadlines.schedule(("cleanup",), at_ms, lambda now: _clean_up(machine, now))


def _clean_up(machine: GroupMachine, now: Now) -> Outcome[None]:
    """Tombstones for what has expired; as soon as they are stored comes the rest, if there is any."""
    records, more = portion(chain.from_iterable(expired(machine, group, now) for group in machine.groups.values()))
    schedule_cleanup(machine, now)
    return Outcome(None, records, committed=(lambda now: _schedule(machine, now.ms)) if more else None)


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
    if len(records) == len(committed) and group.is_empty and not offsets.pending_partitions(group.id):
        records += group.tombstones()
    return records
