"""A plain request of every API, in every version that the registry offers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.oracle.asking import batch, fetch, fill, list_offsets, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.coordinator_requests import COORDINATOR_REQUESTS
from compat_tests.oracle.groups import list_groups, settle_groups
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import settle_transactions
from kwire.broker.registry import APIS, Api
from kwire.protocol.errors import ErrorCode
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
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest
from kwire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kwire.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kwire.protocol.messages.describe_producers import DescribeProducersRequest
from kwire.protocol.messages.describe_producers import TopicRequest as ProducersTopic
from kwire.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
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
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kwire.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kwire.protocol.schema import Message

pytestmark = pytest.mark.xdist_group("oracle")

TOPIC, BROKER = 2, 4
Request = Callable[[Side, str, int], Message]

REQUESTS: dict[str, Request] = {
    "produce": lambda side, topic, version: produce(side, topic, batch(2), version),
    "fetch": lambda side, topic, version: fetch(side, topic, 0, version),
    "list_offsets": lambda side, topic, version: list_offsets(topic, -1),
    "metadata": lambda side, topic, version: MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
    "find_coordinator": lambda side, topic, version: (
        FindCoordinatorRequest(coordinator_keys=["group"]) if version >= 4 else FindCoordinatorRequest(key="group")
    ),
    "api_versions": lambda side, topic, version: ApiVersionsRequest(
        client_software_name="oracle", client_software_version="1.0"
    ),
    "create_topics": lambda side, topic, version: CreateTopicsRequest(
        topics=[CreatableTopic(name=f"{topic}-{version}", num_partitions=2, replication_factor=1)]
    ),
    "delete_topics": lambda side, topic, version: (
        DeleteTopicsRequest(topics=[DeleteTopicState(name=side.topic(f"doomed-{version}"))], timeout_ms=10_000)
        if version >= 6
        else DeleteTopicsRequest(topic_names=[side.topic(f"doomed-{version}")], timeout_ms=10_000)
    ),
    "delete_records": lambda side, topic, version: DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])],
        timeout_ms=10_000,
    ),
    "init_producer_id": lambda side, topic, version: InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60000
    ),
    "offset_for_leader_epoch": lambda side, topic, version: OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)])]
    ),
    "describe_configs": lambda side, topic, version: DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)]
    ),
    "alter_configs": lambda side, topic, version: AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=topic,
                configs=[AlterableConfig(name="flush.ms", value="1000")],
            )
        ]
    ),
    "alter_replica_log_dirs": lambda side, topic, version: AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path="/nowhere", topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
    ),
    "describe_log_dirs": lambda side, topic, version: DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=topic, partitions=[0])]
    ),
    "create_partitions": lambda side, topic, version: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=side.topic(f"growing-{version}"), count=3, assignments=None)],
        timeout_ms=10_000,
    ),
    "incremental_alter_configs": lambda side, topic, version: IncrementalAlterConfigsRequest(
        resources=[
            IncrementalResource(
                resource_type=TOPIC,
                resource_name=topic,
                configs=[IncrementalConfig(name="flush.ms", config_operation=0, value="1000")],
            )
        ]
    ),
    "alter_partition_reassignments": lambda side, topic, version: AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=[1])])]
    ),
    "list_partition_reassignments": lambda side, topic, version: ListPartitionReassignmentsRequest(topics=None),
    "describe_cluster": lambda side, topic, version: DescribeClusterRequest(),
    "describe_producers": lambda side, topic, version: DescribeProducersRequest(
        topics=[ProducersTopic(name=topic, partition_indexes=[0])]
    ),
    "list_config_resources": lambda side, topic, version: ListConfigResourcesRequest(
        resource_types=[BROKER] if version else []
    ),
    "update_features": lambda side, topic, version: UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="absent", max_version_level=1)]
    ),
    "describe_topic_partitions": lambda side, topic, version: DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=topic)]
    ),
}

REQUESTS |= COORDINATOR_REQUESTS

UNTIL = {"init_producer_id": lambda response: response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Apache Kafka has to fetch its first producer ids."""

DEVIATIONS = {
    "api_versions": ("APIs to come", "features of Apache Kafka alone"),
    "create_topics": ("no eligible leader replicas",),
    "describe_configs": ("no eligible leader replicas",),
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.module)
def test_a_plain_request(both: Both, api: Api) -> None:
    def scenario(side: Side) -> None:
        if api.module in COORDINATOR_REQUESTS or api.module == "find_coordinator":
            settle_groups(side)
            settle_transactions(side)
        topic = side.topic()
        fill(side, topic, batch(3), batch(1))
        for version in range(api.least, api.greatest + 1):
            if api.module == "list_groups":
                list_groups(side, side.name(""), version, "a plain request")
                continue
            side.ask(REQUESTS[api.module](side, topic, version), version, until=UNTIL.get(api.module))

    both.agree(scenario, *DEVIATIONS.get(api.module, ()))
