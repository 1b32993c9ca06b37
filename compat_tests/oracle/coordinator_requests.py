"""A plain request to the coordinators in every API, by the API's module; most are about what is not there."""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.oracle.groups import Client, commit_request, fetch_offsets
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import Producer, add, add_offsets, end, markers, of_a_broker
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.list_transactions import ListTransactionsRequest
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kwire.protocol.messages.sync_group import SyncGroupRequest
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kwire.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kwire.protocol.schema import Message

GROUP, MEMBER, TRANSACTIONAL_ID = "absent-group", "nobody", "absent-transactional-id"
PRODUCER = Producer(1 << 40, 0)
SAYS_PROTOCOL, MANY_LEAVE, STATES, OF_BROKERS = 5, 3, 4, 4


def _join(side: Side, topic: str, version: int) -> Message:
    return Client(side, side.name(f"group-{version}"), "one").join_request(version)


def _sync(side: Side, topic: str, version: int) -> Message:
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= SAYS_PROTOCOL else {}
    return SyncGroupRequest(group_id=GROUP, generation_id=1, member_id=MEMBER, **named)


def _leave(side: Side, topic: str, version: int) -> Message:
    if version >= MANY_LEAVE:
        return LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=MEMBER)])
    return LeaveGroupRequest(group_id=GROUP, member_id=MEMBER)


def _list_groups(side: Side, topic: str, version: int) -> Message:
    return ListGroupsRequest(states_filter=["Dead"] if version >= STATES else [])


def _delete_offsets(side: Side, topic: str, version: int) -> Message:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    return OffsetDeleteRequest(group_id=GROUP, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)])


def _add_partitions(side: Side, topic: str, version: int) -> Message:
    if version < OF_BROKERS:
        return add(TRANSACTIONAL_ID, PRODUCER, (topic, 0))
    return AddPartitionsToTxnRequest(transactions=[of_a_broker(TRANSACTIONAL_ID, PRODUCER, (topic, 0))])


def _commit_in_transaction(side: Side, topic: str, version: int) -> Message:
    partitions = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    return TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID,
        group_id=GROUP,
        producer_id=PRODUCER.id,
        producer_epoch=PRODUCER.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )


COORDINATOR_REQUESTS: dict[str, Callable[[Side, str, int], Message]] = {
    "offset_commit": lambda side, topic, version: commit_request(side, side.name("group"), {topic: [(0, 5)]}, version),
    "offset_fetch": lambda side, topic, version: fetch_offsets(side, side.name("group"), {topic: [0]}, version),
    "join_group": _join,
    "heartbeat": lambda side, topic, version: HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=MEMBER),
    "leave_group": _leave,
    "sync_group": _sync,
    "describe_groups": lambda side, topic, version: DescribeGroupsRequest(groups=[GROUP]),
    "list_groups": _list_groups,
    "delete_groups": lambda side, topic, version: DeleteGroupsRequest(groups_names=[GROUP]),
    "offset_delete": _delete_offsets,
    "consumer_group_heartbeat": lambda side, topic, version: ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=MEMBER, member_epoch=1
    ),
    "consumer_group_describe": lambda side, topic, version: ConsumerGroupDescribeRequest(group_ids=[GROUP]),
    "add_partitions_to_txn": _add_partitions,
    "add_offsets_to_txn": lambda side, topic, version: add_offsets(TRANSACTIONAL_ID, PRODUCER, GROUP),
    "end_txn": lambda side, topic, version: end(TRANSACTIONAL_ID, PRODUCER),
    "write_txn_markers": lambda side, topic, version: WriteTxnMarkersRequest(
        markers=[markers(PRODUCER, (side.name("absent"), 0))]
    ),
    "txn_offset_commit": _commit_in_transaction,
    "describe_transactions": lambda side, topic, version: DescribeTransactionsRequest(
        transactional_ids=[TRANSACTIONAL_ID]
    ),
    "list_transactions": lambda side, topic, version: ListTransactionsRequest(state_filters=["Dead"]),
}
