"""When a group epoch begins, and the target assignment that is made for it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.coordinator.groups.consumer.assignors import range as range_assignor
from kwire.coordinator.groups.consumer.assignors import uniform
from kwire.coordinator.groups.consumer.assignors.spec import Assignor, GroupSpec, MemberSpec
from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.member import NO_PARTITIONS, ConsumerMember
from kwire.coordinator.groups.consumer.records import (
    epoch_record,
    partition_metadata_tombstone,
    target_epoch_record,
    target_record,
)
from kwire.coordinator.groups.consumer.settings import assignment_interval_ms
from kwire.coordinator.runtime.outcome import Now

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine
    from kwire.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

ASSIGNORS: dict[str, Assignor] = {"uniform": uniform.assign, "range": range_assignor.assign}


def update_epoch(machine: GroupMachine, draft: Draft, *, bump: bool) -> None:
    """Begins a group epoch where `bump` says so, or where the topics of the group have changed since the last one."""
    group = draft.group
    image = machine.image()
    if not bump and group.checked == (image.version, group.epochs.metadata_hash):
        return
    metadata_hash = machine.topic_hashes.of_group(group.subscribed_topics(), image)
    if bump or metadata_hash != group.epochs.metadata_hash:
        draft.write(epoch_record(group.id, group.epochs.group + 1, metadata_hash))
        logger.info("group epoch begins group=%r epoch=%d", group.id, group.epochs.group)
    group.checked = image.version, metadata_hash
    if group.epochs.has_partition_metadata:
        draft.write(partition_metadata_tombstone(group.id))


def update_target(machine: GroupMachine, draft: Draft, now: Now) -> None:
    """Makes the target assignment of the group epoch, unless there is one, or the one before is too young."""
    group = draft.group
    epochs = group.epochs
    if epochs.assignment >= epochs.group or not _may_assign(machine, group, now):
        return
    name = group.preferred_assignor(default_assignor(machine))
    assignment = ASSIGNORS[name](_spec(group, machine.image()))
    for member_id in group.members:
        target = assignment.get(member_id, NO_PARTITIONS)
        if target != group.targets.get(member_id):
            draft.write(target_record(group.id, member_id, target))
    draft.write(target_epoch_record(group.id, epochs.group, now.wall_ms))


def default_assignor(machine: GroupMachine) -> str:
    """For members that have no wish."""
    name: str = machine.config()["group.consumer.assignors"][0]
    return name


def subscribed_ids(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> frozenset[bytes]:
    """The ids of the existing topics that a member reads."""
    topics = (image.topic(name) for name in group.topics_of(member))
    return frozenset(topic.id for topic in topics if topic is not None)


def _may_assign(machine: GroupMachine, group: ConsumerGroup, now: Now) -> bool:
    made_ms = group.epochs.assigned_ms
    interval_ms = assignment_interval_ms(machine, group.id)
    # Nor may it wait where the clock was set back.
    return not made_ms or not interval_ms or not made_ms <= now.wall_ms < made_ms + interval_ms


def _spec(group: ConsumerGroup, image: MetadataImage) -> GroupSpec:
    topics = {name: topic for name in group.subscribed_topics() if (topic := image.topic(name)) is not None}
    ids: dict[frozenset[str], frozenset[bytes]] = {}
    members = {}
    for member_id, member in group.members.items():
        names = group.topics_of(member)
        if names not in ids:
            ids[names] = frozenset(topics[name].id for name in names if name in topics)
        members[member_id] = MemberSpec(ids[names], group.target_of(member_id), member.instance_id)
    return GroupSpec(
        members, {topic.id: len(topic.partitions) for topic in topics.values()}, homogeneous=len(set(ids.values())) <= 1
    )
