"""ConsumerGroupHeartbeat (key 68, KIP-848): a member joins, stays, says what it has, and learns what it may have."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.groups.consumer import migration, sessions
from kwire.coordinator.groups.consumer.draft import Draft
from kwire.coordinator.groups.consumer.epochs import subscribed_ids, update_epoch, update_target
from kwire.coordinator.groups.consumer.group import ConsumerGroup
from kwire.coordinator.groups.consumer.leaving import leave
from kwire.coordinator.groups.consumer.member import LEFT, LEFT_STATIC, ConsumerMember, EpochsByPartition, MemberState
from kwire.coordinator.groups.consumer.membership import (
    check_epoch,
    check_not_fenced,
    check_room,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from kwire.coordinator.groups.consumer.patterns import PatternUpdate
from kwire.coordinator.groups.consumer.reconciliation import Owned, Target, reconcile
from kwire.coordinator.groups.consumer.records import current_assignment_record, member_record
from kwire.coordinator.groups.consumer.resolution import MayDescribe
from kwire.coordinator.groups.consumer.settings import heartbeat_interval_ms
from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

logger = logging.getLogger(__name__)

Answer = Outcome[ConsumerGroupHeartbeatResponse]


def heartbeat(
    machine: GroupMachine, caller: Caller, request: ConsumerGroupHeartbeatRequest, may_describe: MayDescribe, now: Now
) -> Answer:
    """A member's heartbeat, which has passed `check_heartbeat`: it joins with epoch 0 and leaves with -1 or -2.

    Raises GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID, INVALID_REGULAR_EXPRESSION.
    """
    if request.member_epoch in (LEFT, LEFT_STATIC):
        return leave(machine, request, now)
    with Draft(machine, request.group_id) as draft:
        bump = _open_group(machine, draft, now, joins=request.member_epoch == 0)
        before, member = _heartbeat(machine, draft, caller, request, may_describe, now, bump=bump)
    sessions.begin_session(machine, request.group_id, member.id, now)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(machine, request.group_id),
    )
    if request.member_epoch == 0 or _is_full(request) or before.assigned != member.assigned:
        response.assignment = _assignment(member.assigned)
    return Outcome(response, draft.records)


def _open_group(machine: GroupMachine, draft: Draft, now: Now, *, joins: bool) -> bool:
    """Sees to it that there is a consumer group, which a classic group may become. Whether it needs another epoch."""
    group = machine.groups.get(draft.group_id)
    if isinstance(group, ConsumerGroup):
        return False
    if group is None:
        if not joins:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {draft.group_id} not found.")
        draft.make_group()
    elif joins and group.is_empty:
        draft.write(*group.tombstones())
        draft.make_group()
    elif joins and isinstance(group, ClassicGroup):
        return migration.upgrade(machine, draft, group, now)
    else:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {draft.group_id} is not a consumer group.")
    return False


def _heartbeat(
    machine: GroupMachine,
    draft: Draft,
    caller: Caller,
    request: ConsumerGroupHeartbeatRequest,
    may_describe: MayDescribe,
    now: Now,
    *,
    bump: bool,
) -> tuple[ConsumerMember, ConsumerMember]:
    """The member before and after."""
    check_room(machine, draft.group, request.member_id)
    owned = _owned(request)
    before = _member(machine, draft, request, owned)
    member = _described(before, caller, request)
    update = PatternUpdate(draft.group, before, member)
    names_changed = member.topic_names != before.topic_names
    if member != before:
        draft.write(member_record(request.group_id, member))
    regex = update.write(draft)
    update.resolve(machine, draft, may_describe, now)
    update_epoch(machine, draft, bump=bump or names_changed or regex.resolved)
    update_target(machine, draft, now)
    return before, take_step(machine, draft, member, owned, now, subscription_changed=names_changed or regex.changed)


def take_step(
    machine: GroupMachine,
    draft: Draft,
    member: ConsumerMember,
    owned: Owned | None,
    now: Now,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after its next step towards its target, which is written."""
    group = draft.group
    epoch = group.epochs.assignment
    if member.is_reconciled_to(epoch) and not subscription_changed:
        return member
    target = Target(epoch, group.target_of(member.id), subscribed_ids(group, member, machine.image()))
    updated = reconcile(
        member,
        target,
        owned,
        lambda topic_id, index: (topic_id, index) in group.owners,
        subscription_changed=subscription_changed,
    )
    if updated == member:
        return member
    draft.write(current_assignment_record(group.id, updated))
    if updated.classic is None:
        if updated.state is MemberState.UNREVOKED_PARTITIONS:
            draft.at_end(lambda: sessions.begin_revocation(machine, group.id, updated, now))
        else:
            draft.at_end(lambda: sessions.end_revocation(machine, group.id, updated.id))
    return updated


def _member(
    machine: GroupMachine, draft: Draft, request: ConsumerGroupHeartbeatRequest, owned: Owned | None
) -> ConsumerMember:
    group = draft.group
    joins = request.member_epoch == 0
    member_id = request.member_id or uuids.to_text(machine.randomness.uuid())
    if request.instance_id is None:
        member = dynamic_member(group, member_id, joins=joins)
    elif joins:
        member = joining_static_member(draft, member_id, request.instance_id, classic=False)
    else:
        member = known_static_member(group, request.instance_id)
        check_not_fenced(member, member_id, request.instance_id)
    check_epoch(member, request.member_epoch, owned)
    if joins:
        logger.info("member joins group=%r member=%r instance=%r", group.id, member_id, request.instance_id)
    return member


def _described(member: ConsumerMember, caller: Caller, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member as it describes itself now; what it does not say stays."""
    names = request.subscribed_topic_names
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    owned: dict[bytes, list[int]] = {}
    for topic in request.topic_partitions:  # of which one may come twice
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says everything, as it does when it is not sure what the coordinator knows."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _assignment(assigned: EpochsByPartition) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(epochs)) for topic_id, epochs in assigned.items()
        ]
    )
