"""What admins ask about groups: ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.offsets.delete import tombstones_of_group
from kwire.coordinator.runtime.outcome import Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kwire.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def list_groups(machine: GroupMachine, states: Collection[str], kinds: Collection[str]) -> list[ListedGroup]:
    """The groups in one of these states and of one of these types, named in lower case; none named is any."""
    groups = [(group_id, group, group.committed_state_name) for group_id, group in machine.groups.committed_items()]
    return [
        ListedGroup(group_id=group_id, protocol_type=group.protocol_type, group_state=state, group_type=group.kind)
        for group_id, group, state in groups
        if (not states or state.lower() in states) and (not kinds or group.kind in kinds)
    ]


def describe_group(machine: GroupMachine, group_id: str) -> DescribedGroup:
    """A classic group; what its members said for the protocol only while it is stable.

    Raises GROUP_ID_NOT_FOUND where there is no such group, or one of another kind.
    """
    group = machine.groups.committed(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    stable = group.state is ClassicState.STABLE
    protocol = group.protocol_name or "" if stable else ""
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol,
        members=[
            DescribedGroupMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def delete_group(machine: GroupMachine, group_id: str) -> Outcome[None]:
    """Forgets a group without members, and its offsets. Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    group = machine.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.check_delete()
    return Outcome(None, [*tombstones_of_group(machine, group_id), *group.tombstones()])
