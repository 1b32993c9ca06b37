"""A classic group as a record of __consumer_offsets, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.member import ClassicMember, SupportedProtocol
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Producer
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

VALUE_VERSION = 3
"""In which Apache Kafka 4 writes the value."""


def group_record(group: ClassicGroup, assignment: dict[str, bytes]) -> CoordinatorRecord:
    """The group with what each member (by id) is assigned."""
    protocol = group.protocol_name
    members = [
        MemberMetadata(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(protocol or ""),
            assignment=assignment.get(member.id, b""),
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=protocol,
        leader=group.leader,
        current_state_timestamp=_since(group),
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.id), value, VALUE_VERSION)


def empty_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A group that has been created, whoever is about to be its first member."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=_since(group), members=[]
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.id), value, VALUE_VERSION)


def _since(group: ClassicGroup) -> int:
    return -1 if group.state_since_ms is None else group.state_since_ms


def replay_group(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """A group as it was written, or its end."""
    key, value = record.key, record.value
    assert isinstance(key, GroupMetadataKey)
    if value is None:
        machine.groups.pop(key.group)
        return
    assert isinstance(value, GroupMetadataValue)
    group = ClassicGroup(key.group, value.current_state_timestamp)
    if value.current_state_timestamp < 0:
        group.state_since_ms = None
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol_name = value.protocol
    group.leader = value.leader
    for written in value.members:
        group.add(_member(written, value.protocol or ""), value.protocol_type)
    if group.members:
        group.state = ClassicState.STABLE
    group.read_subscriptions()
    machine.groups[key.group] = group


def _member(written: MemberMetadata, protocol: str) -> ClassicMember:
    timeout_ms = written.session_timeout if written.rebalance_timeout == -1 else written.rebalance_timeout
    return ClassicMember(
        written.member_id,
        written.group_instance_id,
        written.client_id,
        written.client_host,
        timeout_ms,
        written.session_timeout,
        (SupportedProtocol(protocol, bytes(written.subscription)),),
        bytes(written.assignment),
    )
