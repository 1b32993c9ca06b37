"""ConsumerGroupDescribe (key 69): a group's state, and what each member has and shall have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire.coordinator.groups.consumer.epochs import default_assignor
from kwire.coordinator.groups.consumer.leaving import consumer_group
from kwire.coordinator.groups.consumer.member import ConsumerMember, Partitions
from kwire.metadata.image import MetadataImage
from kwire.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def describe(machine: GroupMachine, group_id: str) -> DescribedGroup:
    """The group. Raises GROUP_ID_NOT_FOUND where there is no consumer group of that id."""
    group = consumer_group(machine, group_id)
    image = machine.image()
    epochs = group.epochs
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=epochs.group,
        assignment_epoch=epochs.assignment,
        assignor_name=group.preferred_assignor(default_assignor(machine)),
        members=[_member(member, group.target_of(member.id), image) for member in group.members.values()],
    )


def _member(member: ConsumerMember, target: Partitions, image: MetadataImage) -> Member:
    has: dict[bytes, list[int]] = {}
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, epochs in owned.items():
            has.setdefault(topic_id, []).extend(epochs)
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(has, image),
        target_assignment=_assignment(target, image),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], image: MetadataImage) -> Assignment:
    """Topics that do not exist any more are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=image.topic_names[topic_id], partitions=sorted(indexes))
            for topic_id, indexes in partitions.items()
            if topic_id in image.topic_names
        ]
    )
