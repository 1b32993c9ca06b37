"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup on it.

Nobody leads and nobody waits for the others: a member joins, is told its generation, which is its member epoch, and
gets its partitions by SyncGroup. Where it shall let go of some or may have more, its heartbeat tells it to join again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.consumer import migration, sessions
from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.epochs import update_epoch, update_target
from kwire.coordinator.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from kwire.coordinator.groups.consumer.heartbeat import take_step
from kwire.coordinator.groups.consumer.leaving import fence_members
from kwire.coordinator.groups.consumer.member import (
    ClassicMetadata,
    ClassicProtocol,
    ConsumerMember,
    MemberState,
    without_epochs,
)
from kwire.coordinator.groups.consumer.membership import (
    check_not_fenced,
    check_room,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from kwire.coordinator.groups.consumer.patterns import PatternUpdate
from kwire.coordinator.groups.consumer.reconciliation import Owned
from kwire.coordinator.groups.consumer.records import member_record
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome
from kwire.metadata.image import MetadataImage
from kwire.protocol import uuids
from kwire.protocol.codec import MalformedError, UnsupportedVersionError
from kwire.protocol.consumer_protocol.serde import decode
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kwire.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

_ID_REQUIRED_FROM = 4
"""JoinGroup versions from this one on give a new member its id first (KIP-394)."""


def join(
    machine: GroupMachine, group: ConsumerGroup, caller: Caller, request: JoinGroupRequest, now: Now
) -> Outcome[JoinGroupResponse]:
    """The member's next step; its generation. Answers MEMBER_ID_REQUIRED with the id.

    Raises INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, and
    UNKNOWN_SERVER_ERROR where the subscription can't be read.
    """
    if migration.policy(machine) == "DISABLED":
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id or uuids.to_text(machine.randomness.uuid())
    check_room(machine, group, member_id)
    if not _supports(group, request):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.group_instance_id is None and not request.member_id and caller.api_version >= _ID_REQUIRED_FROM:
        required = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None)
        return Outcome(required)
    replaced = group.static_member(request.group_instance_id)
    downgrades = replaced is not None and migration.may_downgrade_replacing(machine, group, replaced)
    subscription = _subscription(request)
    owned = _owned(subscription, machine.image())
    with Draft(machine, group.id) as draft:
        before = _joining_member(draft, request, member_id)
        member = _described(before, caller, request, subscription)
        update = PatternUpdate(draft.group, before, member)
        names_changed = member.topic_names != before.topic_names
        if member != before:
            draft.write(member_record(group.id, member))
        changed = update.write(draft).changed or names_changed
        update_epoch(machine, draft, bump=changed)
        if not downgrades:
            update_target(machine, draft, now)
        rebalance = downgrades and not _all_have_their_targets(draft.group, member.id)
        if not rebalance:
            member = take_step(machine, draft, member, owned, now, subscription_changed=changed)
        members = draft.group.members.values()
        targets = {each.id: draft.group.target_of(each.id) for each in members}
        tombstones = draft.group.tombstones()
    response = JoinGroupResponse(
        member_id=member.id,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )
    if downgrades:
        records = [*draft.records, *tombstones]
        return migration.downgrade(machine, group, records, members, targets, response, now, rebalance=rebalance)

    def joined(now: Now) -> None:
        sessions.end_join(machine, group.id, member.id)
        sessions.begin_session(machine, group.id, member.id, now, request.session_timeout_ms)
        sessions.begin_sync(machine, group.id, member.id, request.rebalance_timeout_ms, now)

    if draft.records:
        return Outcome(response, draft.records, committed=joined)
    joined(now)
    return Outcome(response)


def _all_have_their_targets(group: ConsumerGroup, joining: str) -> bool:
    """Whether all but the joining member read what they shall, so that a classic group can go on with that.

    Apache Kafka asks only whether the targets are those of the newest epoch: a member that still waits for a partition
    then never hears that it has it.
    """
    epochs = group.epochs
    return epochs.assignment == epochs.group and all(
        member.is_reconciled_to(epochs.assignment) for member in group.members.values() if member.id != joining
    )


def _supports(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Whether all members of the classic protocol have an assignor in common with this one."""
    return request.protocol_type == PROTOCOL_TYPE and any(
        group.classic_protocols[protocol.name] == group.classic_members for protocol in request.protocols
    )


def _joining_member(draft: Draft, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
    instance_id = request.group_instance_id
    if instance_id is None:
        return dynamic_member(draft.group, member_id, joins=True)
    if not request.member_id:
        return joining_static_member(draft, member_id, instance_id, classic=True)
    member = known_static_member(draft.group, instance_id)
    check_not_fenced(member, member_id, instance_id)
    return member


def _described(
    member: ConsumerMember, caller: Caller, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    protocols = (ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols)
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, tuple(protocols)),
    )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode(ConsumerProtocolSubscription, request.protocols[0].metadata)
    except (MalformedError, UnsupportedVersionError):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _owned(subscription: ConsumerProtocolSubscription, image: MetadataImage) -> Owned:
    return {
        topic.id: owned.partitions
        for owned in subscription.owned_partitions
        if (topic := image.topic(owned.topic)) is not None
    }


def sync(
    machine: GroupMachine, group: ConsumerGroup, request: SyncGroupRequest, now: Now
) -> Outcome[SyncGroupResponse]:
    """The member's assignment.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
    REBALANCE_IN_PROGRESS.
    """
    member, classic = _known(group, request.member_id, request.group_instance_id, request.generation_id)
    for said, is_so in (
        (request.protocol_type, PROTOCOL_TYPE),
        (request.protocol_name, classic.protocols[0].name),
    ):
        if said is not None and said != is_so:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.epochs.assignment > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        sessions.begin_join(machine, group.id, member, now)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    sessions.end_sync(machine, group.id, member.id)
    sessions.begin_session(machine, group.id, member.id, now, classic.session_timeout_ms)
    assigned = without_epochs(member.assigned)
    return Outcome(
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=migration.encoded_assignment(assigned, classic.protocols[0].metadata, machine.image()),
        )
    )


def heartbeat(
    machine: GroupMachine, group: ConsumerGroup, request: HeartbeatRequest, now: Now
) -> Outcome[HeartbeatResponse]:
    """Prolongs the member's session; REBALANCE_IN_PROGRESS where joining again gets it on.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member, classic = _known(group, request.member_id, request.group_instance_id, request.generation_id)
    sessions.begin_session(machine, group.id, member.id, now, classic.session_timeout_ms)
    records = _assign_if_nobody_else_does(machine, group, now)
    if (
        records
        or member.epoch < group.epochs.assignment
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    ):
        sessions.begin_join(machine, group.id, member, now)
        return Outcome(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), records)
    return Outcome(HeartbeatResponse())


def _assign_if_nobody_else_does(machine: GroupMachine, group: ConsumerGroup, now: Now) -> list[CoordinatorRecord]:
    """What a heartbeat of the consumer protocol would do, in a group that has nobody left who speaks it.

    Where groups may not change back (`group.consumer.migration.policy`), partitions of whoever left last would be read
    by nobody. Apache Kafka leaves them so until somebody joins.
    """
    if group.classic_members < len(group.members):
        return []
    with Draft(machine, group.id) as draft:
        update_epoch(machine, draft, bump=False)
        update_target(machine, draft, now)
    return draft.records


def _known(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_static_member(group, instance_id)
        check_not_fenced(member, member_id, instance_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def leave(
    machine: GroupMachine, group: ConsumerGroup, identities: list[MemberIdentity], now: Now
) -> Outcome[LeaveGroupResponse]:
    """An answer for each member, of whichever protocol; those of a static id alone are removed by an admin."""
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in identities:
        code = ErrorCode.NONE
        try:
            member = _leaving_member(group, identity)
            leaving[member.id] = member
        except KafkaError as error:
            code = error.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    return fence_members(machine, group.id, list(leaving.values()), LeaveGroupResponse(members=answers), now)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = known_static_member(group, identity.group_instance_id)
    if identity.member_id:
        check_not_fenced(member, identity.member_id, identity.group_instance_id)
    return member
