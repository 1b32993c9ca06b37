"""The time-outs of a group: the broker's, or what an admin has set for the group (KIP-848's group configs)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def session_timeout_ms(machine: GroupMachine, group_id: str) -> int:
    """After so long a silence a member is fenced."""
    return _setting(machine, group_id, "session.timeout.ms")


def heartbeat_interval_ms(machine: GroupMachine, group_id: str) -> int:
    """So often members shall heartbeat."""
    return _setting(machine, group_id, "heartbeat.interval.ms")


def assignment_interval_ms(machine: GroupMachine, group_id: str) -> int:
    """So long a target assignment stays at least (KIP-1263)."""
    return _setting(machine, group_id, "assignment.interval.ms")


def _setting(machine: GroupMachine, group_id: str, name: str) -> int:
    config = machine.config()
    own = machine.image().config("group", group_id).get(f"consumer.{name}")
    if own is None:
        number: int = config[f"group.consumer.{name}"]
        return number
    # The broker's bounds may have become narrower since the group's value was accepted.
    bounded: int = min(max(int(own), config[f"group.consumer.min.{name}"]), config[f"group.consumer.max.{name}"])
    return bounded
