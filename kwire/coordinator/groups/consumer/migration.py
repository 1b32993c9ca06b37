"""A classic group becomes a consumer group when the first member of the consumer protocol joins it, and a classic group
again when the last one has gone: so consumers can be changed over one by one, and back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from kwire.coordinator.groups.classic import rebalancing
from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.member import ClassicMember, SupportedProtocol
from kwire.coordinator.groups.classic.records import group_record
from kwire.coordinator.groups.consumer import sessions
from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from kwire.coordinator.groups.consumer.member import (
    NO_PARTITIONS,
    ClassicMetadata,
    ClassicProtocol,
    ConsumerMember,
    Partitions,
    with_epoch,
    without_epochs,
)
from kwire.coordinator.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome
from kwire.metadata.image import MetadataImage
from kwire.protocol.codec import MalformedError, UnsupportedVersionError
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.consumer_protocol.serde import decode
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.version_prefixed import encode_version_prefixed, read_prefix

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

T = TypeVar("T")

logger = logging.getLogger(__name__)

_UPGRADES = ("UPGRADE", "BIDIRECTIONAL")
_DOWNGRADES = ("DOWNGRADE", "BIDIRECTIONAL")


def policy(machine: GroupMachine) -> str:
    """DISABLED, UPGRADE, DOWNGRADE or BIDIRECTIONAL."""
    name: str = machine.config()["group.consumer.migration.policy"]
    return name.upper()


# Upgrade


def upgrade(machine: GroupMachine, draft: Draft, group: ClassicGroup, now: Now) -> bool:
    """The classic group becomes a consumer group, members and assignment stay. Whether all must be assigned anew.

    Whoever waits for a rebalance of it joins again. Raises GROUP_ID_NOT_FOUND where it can't be.
    """
    _check_upgrade(machine, group)
    image = machine.image()
    epoch = max(group.generation, 1)  # 0, where the first rebalance is not over, is no epoch of a member
    members = [_consumer_member(group, member, epoch, image) for member in group.members.values()]
    topics = {name for member in members for name in member.topic_names}
    draft.write(*group.tombstones())
    draft.write(*(member_record(group.id, member) for member in members))
    draft.write(epoch_record(group.id, epoch, machine.topic_hashes.of_group(topics, image)))
    draft.write(*(target_record(group.id, member.id, without_epochs(member.assigned)) for member in members))
    draft.write(target_epoch_record(group.id, epoch, 0))
    draft.write(*(current_assignment_record(group.id, member) for member in members))

    def take_over() -> None:
        # The deadlines of the classic group stay, in case this can't be written; without the group they do nothing.
        for member in group.members.values():
            group.answer_join_with(member, ErrorCode.REBALANCE_IN_PROGRESS)
            group.answer_sync_with(member, ErrorCode.REBALANCE_IN_PROGRESS)
            sessions.begin_session(machine, group.id, member.id, now, member.session_timeout_ms)
        logger.info("classic group becomes consumer group group=%r", group.id)

    draft.at_end(take_over)
    return group.state is not ClassicState.STABLE


def _check_upgrade(machine: GroupMachine, group: ClassicGroup) -> None:
    if policy(machine) not in _UPGRADES:
        reason = "online upgrade is disabled"
    elif group.protocol_type != PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > machine.config()["group.consumer.max.size"]:
        reason = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise _no_upgrade(group, reason)


def _no_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.id} to consumer group because {reason}."
    )


def _consumer_member(group: ClassicGroup, member: ClassicMember, epoch: int, image: MetadataImage) -> ConsumerMember:
    protocol = group.protocol_name or member.protocols[0].name
    try:
        subscription = decode(ConsumerProtocolSubscription, member.metadata(protocol))
        assigned = _assigned(group, member, image)
    except (MalformedError, UnsupportedVersionError):
        raise _no_upgrade(group, "the embedded consumer protocol is malformed") from None
    return ConsumerMember(
        member.id,
        epoch,
        epoch,
        member.instance_id,
        subscription.rack_id or None,
        member.rebalance_timeout_ms,
        member.client_id,
        member.client_host,
        frozenset(subscription.topics),
        assigned=with_epoch(assigned, epoch),
        classic=ClassicMetadata(
            member.session_timeout_ms,
            tuple(ClassicProtocol(each.name, each.metadata) for each in member.protocols),
        ),
    )


def _assigned(group: ClassicGroup, member: ClassicMember, image: MetadataImage) -> Partitions:
    if not member.assignment:
        return NO_PARTITIONS  # it has joined, but never synced
    assignment = decode(ConsumerProtocolAssignment, member.assignment)
    if assignment.user_data:
        raise _no_upgrade(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade",
        )
    return {
        topic.id: frozenset(assigned.partitions)
        for assigned in assignment.assigned_partitions
        if assigned.partitions and (topic := image.topic(assigned.topic)) is not None
    }


# Downgrade


def may_downgrade_without(machine: GroupMachine, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Whether the group becomes a classic one when these members go."""
    left = len(group.members) - len(leaving)
    classic = group.classic_members - sum(member.classic is not None for member in leaving)
    return left == classic and left > 0 and _may_downgrade(machine, left)


def may_downgrade_replacing(machine: GroupMachine, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Whether the group becomes a classic one when a member of the classic protocol takes this one's place."""
    return (
        replaced.classic is None
        and group.classic_members == len(group.members) - 1
        and _may_downgrade(machine, len(group.members))
    )


def _may_downgrade(machine: GroupMachine, members: int) -> bool:
    largest: int = machine.config()["group.max.size"]
    return policy(machine) in _DOWNGRADES and members <= largest


def downgrade_without(
    machine: GroupMachine, group: ConsumerGroup, leaving: Sequence[ConsumerMember], response: T, now: Now
) -> Outcome[T]:
    """These members go, and the group, now a classic one, rebalances."""
    gone = {member.id for member in leaving}
    stay = {member.id: member for member in group.members.values() if member.id not in gone}
    targets = {member_id: group.target_of(member_id) for member_id in stay}
    return downgrade(machine, group, group.tombstones(), stay.values(), targets, response, now, rebalance=True)


def downgrade(
    machine: GroupMachine,
    group: ConsumerGroup,
    records: Sequence[CoordinatorRecord],
    members: Iterable[ConsumerMember],
    targets: dict[str, Partitions],
    response: T,
    now: Now,
    *,
    rebalance: bool,
) -> Outcome[T]:
    """The group becomes a classic one with these members, all of the classic protocol, and their targets.

    `records`: what ends the consumer group. Classic groups are not on the timeline, so the change is made at once, and
    undone where it can't be written.
    """
    classic = _classic_group(machine, group.id, group.epochs.group, members, targets, now)
    assignment = {member.id: member.assignment for member in classic.members.values()}
    outcome = Outcome(response, [*records, group_record(classic, assignment)], replay=False)
    for member_id in group.members:
        sessions.end_all(machine, group.id, member_id)
    machine.groups[group.id] = classic
    rebalancing.end_deadlines(machine, classic)  # those of a classic group that it was before
    rebalancing.begin_sessions(machine, classic, now)
    if rebalance:
        rebalancing.prepare_rebalance(machine, classic, now, "the last member of the consumer protocol has gone")
    logger.info("consumer group becomes classic group group=%r", group.id)

    def undo(error: KafkaError, now: Now) -> None:
        if machine.groups.get(group.id) is classic:
            machine.groups[group.id] = group
            rebalancing.end_deadlines(machine, classic)
            sessions.begin_sessions(machine, group, now)
        classic.unloaded()

    outcome.failed = undo
    return outcome


def give_way(machine: GroupMachine, group: ConsumerGroup, join: Callable[[], Outcome[T]]) -> Outcome[T]:
    """`join` is about to create a classic group where there is a consumer group without members, which then is gone."""
    machine.groups.pop(group.id)
    outcome = join()
    if not outcome.writes:
        machine.groups[group.id] = group
        return outcome
    undo_join = outcome.failed

    def undo(error: KafkaError, now: Now) -> None:
        if undo_join is not None:
            undo_join(error, now)
        if group.id not in machine.groups:
            machine.groups[group.id] = group

    outcome.records = [*group.tombstones(), *outcome.records]
    outcome.failed = undo
    return outcome


def _classic_group(
    machine: GroupMachine,
    group_id: str,
    generation: int,
    members: Iterable[ConsumerMember],
    targets: dict[str, Partitions],
    now: Now,
) -> ClassicGroup:
    classic = ClassicGroup(group_id, now.wall_ms)
    classic.generation = generation
    for member in members:
        assert member.classic is not None
        protocols = tuple(SupportedProtocol(each.name, each.metadata) for each in member.classic.protocols)
        classic.add(
            ClassicMember(
                member.id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                protocols,
            ),
            PROTOCOL_TYPE,
        )
    classic.protocol_name = classic.selected_protocol()
    for classic_member in classic.members.values():
        metadata = classic_member.metadata(classic.protocol_name)
        classic_member.assignment = encoded_assignment(targets[classic_member.id], metadata, machine.image())
    classic.become(ClassicState.STABLE, now.wall_ms)
    classic.read_subscriptions()
    return classic


def encoded_assignment(partitions: Partitions, subscription: bytes, image: MetadataImage) -> bytes:
    """The partitions as a member of the classic protocol reads them, in the version of its subscription."""
    topics = [
        TopicPartition(topic=image.topic_names[topic_id], partitions=sorted(indexes))
        for topic_id, indexes in partitions.items()
        if topic_id in image.topic_names
    ]
    version = min(_version(subscription), ConsumerProtocolAssignment.max_version)
    return encode_version_prefixed(ConsumerProtocolAssignment(assigned_partitions=topics), version)


def _version(subscription: bytes) -> int:
    """0 where it says none: only the subscription for the protocol in use has been read before."""
    try:
        return max(read_prefix(subscription), 0)
    except MalformedError:
        return 0
