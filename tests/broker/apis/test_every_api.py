"""What holds for every API of the registry, in every version it offers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.broker.registry import APIS, Api, Registry
from kwire.protocol import codec
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kwire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kwire.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kwire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.api_versions import ApiVersionsRequest
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest
from kwire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.messages.describe_producers import DescribeProducersRequest
from kwire.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from kwire.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from kwire.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kwire.protocol.messages.end_txn import EndTxnRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from kwire.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from kwire.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kwire.protocol.messages.list_transactions import ListTransactionsRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message, Struct
from kwire.security.authorizer import ResourceType
from tests.broker.apis import transactions
from tests.broker.scene import Scene, running

TOPIC = 2
ONE_BATCH = build_batch([Record(0, 1_700_000_000_000, None, b"value", [])])


GROUP = "group"
EMPTY_GROUP = "another"
CONSUMER_GROUP = "of the consumer protocol"
GENERATION = 1
TRANSACTION = "transaction"
PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"")]


async def join_a_group(scene: Scene) -> str:
    """The id of GROUP's only member, its leader, which has not synced yet; EMPTY_GROUP has but an offset."""
    await scene.call(FindCoordinatorRequest(key=GROUP), 3)
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10000,
        rebalance_timeout_ms=10000,
        protocol_type="consumer",
        protocols=PROTOCOLS,
    )
    joined = await scene.call(request, 3)
    assert (joined.error_code, joined.generation_id) == (0, GENERATION)
    commit = OffsetCommitRequest(
        group_id=EMPTY_GROUP,
        topics=[
            OffsetCommitRequestTopic(
                name="topic", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
            )
        ],
    )
    committed = await scene.call(commit, 9)
    assert not any(error_codes(committed)), committed
    assert (await scene.call(heartbeat())).error_code == 0
    return joined.member_id


def heartbeat() -> ConsumerGroupHeartbeatRequest:
    """The first of CONSUMER_GROUP's only member."""
    return ConsumerGroupHeartbeatRequest(
        group_id=CONSUMER_GROUP,
        member_id="member",
        rebalance_timeout_ms=10000,
        subscribed_topic_names=["topic"],
        topic_partitions=[],
    )


async def begin_a_transaction(scene: Scene) -> int:
    """The producer id of TRANSACTION, which is open, with epoch 0."""
    producer = await transactions.begin(scene, TRANSACTION)
    added = await transactions.add(scene, producer, transactions.partitions(1), TRANSACTION)
    assert set(added.values()) == {0}
    await scene.call(FindCoordinatorRequest(key=EMPTY_GROUP), 3)
    assert await transactions.add_offsets(scene, producer, EMPTY_GROUP, TRANSACTION, version=3) == 0
    return producer.id


def requests(
    topic: str, topic_id: bytes, version: int, member_id: str = "member", producer_id: int = 0
) -> dict[str, Message]:
    """A request of each API about a topic, a group's member or a transaction, as a client of that version sends it."""
    partitions = [AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    return {
        "add_partitions_to_txn": (
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=TRANSACTION, producer_id=producer_id, producer_epoch=0, topics=partitions
                    )
                ]
            )
            if version >= 4
            else AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=TRANSACTION,
                v3_and_below_producer_id=producer_id,
                v3_and_below_topics=partitions,
            )
        ),
        "add_offsets_to_txn": AddOffsetsToTxnRequest(
            transactional_id=TRANSACTION, producer_id=producer_id, group_id=GROUP
        ),
        "end_txn": EndTxnRequest(transactional_id=TRANSACTION, producer_id=producer_id, committed=True),
        "txn_offset_commit": TxnOffsetCommitRequest(
            transactional_id=TRANSACTION,
            group_id=EMPTY_GROUP,
            producer_id=producer_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic, partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
                )
            ],
        ),
        "write_txn_markers": WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=7,
                    transaction_result=True,
                    topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                )
            ]
        ),
        "describe_transactions": DescribeTransactionsRequest(transactional_ids=[TRANSACTION]),
        "list_transactions": ListTransactionsRequest(),
        "join_group": JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10000,
            rebalance_timeout_ms=10000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=PROTOCOLS,
        ),
        "sync_group": SyncGroupRequest(
            group_id=GROUP,
            generation_id=GENERATION,
            member_id=member_id,
            protocol_type="consumer" if version >= 5 else None,
            protocol_name="range" if version >= 5 else None,
            assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
        ),
        "heartbeat": HeartbeatRequest(group_id=GROUP, generation_id=GENERATION, member_id=member_id),
        "leave_group": (
            LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member_id)])
            if version >= 3
            else LeaveGroupRequest(group_id=GROUP, member_id=member_id)
        ),
        "consumer_group_heartbeat": heartbeat(),
        "consumer_group_describe": ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP]),
        "describe_groups": DescribeGroupsRequest(groups=[GROUP]),
        "list_groups": ListGroupsRequest(),
        "delete_groups": DeleteGroupsRequest(groups_names=[EMPTY_GROUP]),
        "offset_delete": OffsetDeleteRequest(
            group_id=EMPTY_GROUP,
            topics=[OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
        ),
        "offset_commit": OffsetCommitRequest(
            group_id=EMPTY_GROUP,
            topics=[
                OffsetCommitRequestTopic(
                    **({"topic_id": topic_id} if version >= 10 else {"name": topic}),
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
                )
            ],
        ),
        "offset_fetch": (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=GROUP,
                        topics=[
                            OffsetFetchRequestTopics(
                                **({"topic_id": topic_id} if version >= 10 else {"name": topic}), partition_indexes=[0]
                            )
                        ],
                    )
                ]
            )
            if version >= 8
            else OffsetFetchRequest(group_id=GROUP, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])
        ),
        "produce": ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    **({"topic_id": topic_id} if version >= 13 else {"name": topic}),
                    partition_data=[PartitionProduceData(index=0, records=ONE_BATCH)],
                )
            ],
        ),
        "fetch": FetchRequest(
            max_bytes=1000,
            topics=[
                FetchTopic(
                    **({"topic_id": topic_id} if version >= 13 else {"topic": topic}),
                    partitions=[FetchPartition(partition=0, partition_max_bytes=1000)],
                )
            ],
        ),
        "list_offsets": ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)],
                )
            ],
        ),
        "metadata": MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        "find_coordinator": (
            FindCoordinatorRequest(coordinator_keys=["group"]) if version >= 4 else FindCoordinatorRequest(key="group")
        ),
        "api_versions": ApiVersionsRequest(client_software_name="test", client_software_version="1"),
        "create_topics": CreateTopicsRequest(
            topics=[CreatableTopic(name=f"{topic}-{version}", num_partitions=1, replication_factor=1)]
        ),
        "delete_topics": (
            DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000)
            if version >= 6
            else DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000)
        ),
        "delete_records": DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])],
            timeout_ms=1000,
        ),
        "init_producer_id": InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000),
        "offset_for_leader_epoch": OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(topic=topic, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)])
            ]
        ),
        "describe_configs": DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)]
        ),
        "alter_configs": AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=topic,
                    configs=[AlterableConfig(name="retention.ms", value="1000")],
                )
            ]
        ),
        "alter_replica_log_dirs": AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path="/data", topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        ),
        "describe_log_dirs": DescribeLogDirsRequest(topics=None),
        "create_partitions": CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=3, assignments=None)], timeout_ms=1000
        ),
        "incremental_alter_configs": IncrementalAlterConfigsRequest(
            resources=[
                IncrementalResource(
                    resource_type=TOPIC,
                    resource_name=topic,
                    configs=[IncrementalConfig(name="retention.ms", config_operation=0, value="1000")],
                )
            ]
        ),
        "update_features": UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)]
        ),
        "alter_partition_reassignments": AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=[1])])]
        ),
        "list_partition_reassignments": ListPartitionReassignmentsRequest(topics=None),
        "describe_cluster": DescribeClusterRequest(),
        "describe_producers": DescribeProducersRequest(topics=[ProducersTopic(name=topic, partition_indexes=[0])]),
        "list_config_resources": ListConfigResourcesRequest(),
        "describe_topic_partitions": DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)]),
    }


def error_codes(value: object) -> Iterator[int]:
    """Every error code anywhere in a message."""
    if isinstance(value, list):
        for item in value:
            yield from error_codes(item)
    elif isinstance(value, Struct):
        for declared in type(value).declared_fields:
            inner = getattr(value, declared.name)
            if declared.name.endswith("error_code"):
                yield inner
            else:
                yield from error_codes(inner)


VERSIONS = [(api, version) for api in APIS for version in range(api.least, api.greatest + 1)]
NAMES = [f"{api.module}-v{version}" for api, version in VERSIONS]


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=NAMES)
async def test_a_plain_request_succeeds_in_every_version(api: Api, version: int, autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("topic", 2)
        member_id = await join_a_group(scene) if api.needs.resource is ResourceType.GROUP else "none"
        transactional = api.needs.resource is ResourceType.TRANSACTIONAL_ID
        producer_id = await begin_a_transaction(scene) if transactional else 0
        response = await scene.call(requests("topic", topic_id, version, member_id, producer_id)[api.module], version)
        assert not any(error_codes(response)), response


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=NAMES)
def test_a_failure_can_be_told_in_every_version(api: Api, version: int) -> None:
    loaded = Registry().find(api.key, version)
    assert loaded is not None
    request = requests("topic", b"t" * 16, version)[api.module]
    response = loaded.failed(request, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "why"))
    told = codec.decode(loaded.response_type, version, codec.encode(response, version))
    if next(error_codes(loaded.response_type()), None) is not None or any(error_codes(response)):
        assert ErrorCode.KAFKA_STORAGE_ERROR in set(error_codes(response))
    assert type(told) is loaded.response_type


FREE = {"api_versions", "describe_cluster", "list_groups", "list_transactions"}
"""Open to all: DescribeCluster tells what Metadata tells any client, the lists leave out what one may not see."""


@pytest.mark.parametrize("api", APIS, ids=[api.module for api in APIS])
async def test_who_may_nothing_gets_nothing(api: Api, autojump_clock) -> None:
    refusals = {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
    async with running() as scene:
        topic_id = await scene.create("topic")
        if api.needs.resource is ResourceType.GROUP:
            await join_a_group(scene)
        await scene.allow()
        response = await scene.call(requests("topic", topic_id, api.greatest)[api.module], api.greatest)
        codes = {code for code in error_codes(response) if code}
        assert codes <= refusals
        assert codes or api.module in FREE
        assert "topic" in scene.broker.store.image.topics
