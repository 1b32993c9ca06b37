"""StreamsGroupHeartbeat (API key 88): membership of a streams group, and its tasks (KIP-1071)."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, Array


class KeyValue(Struct):
    key: str = field(STRING, "0+")
    value: str = field(STRING, "0+")


class TopicInfo(Struct):
    name: str = field(STRING, "0+")
    partitions: int = field(INT32, "0+")
    replication_factor: int = field(INT16, "0+")
    topic_configs: list[KeyValue] = field(Array(KeyValue), "0+")


class CopartitionGroup(Struct):
    source_topics: list[int] = field(Array(INT16), "0+")
    source_topic_regex: list[int] = field(Array(INT16), "0+")
    repartition_source_topics: list[int] = field(Array(INT16), "0+")


class Subtopology(Struct):
    subtopology_id: str = field(STRING, "0+")
    source_topics: list[str] = field(Array(STRING), "0+")
    source_topic_regex: list[str] = field(Array(STRING), "0+")
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo), "0+")
    repartition_sink_topics: list[str] = field(Array(STRING), "0+")
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo), "0+")
    copartition_groups: list[CopartitionGroup] = field(Array(CopartitionGroup), "0+")


class Topology(Struct):
    epoch: int = field(INT32, "0+")
    subtopologies: list[Subtopology] = field(Array(Subtopology), "0+")


class TaskIds(Struct):
    subtopology_id: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class Endpoint(Struct):
    host: str = field(STRING, "0+")
    port: int = field(UINT16, "0+")


class TaskOffset(Struct):
    subtopology_id: str = field(STRING, "0+")
    partition: int = field(INT32, "0+")
    offset: int = field(INT64, "0+")


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    member_id: str = field(STRING, "0+")
    member_epoch: int = field(INT32, "0+")
    endpoint_information_epoch: int = field(INT32, "0+")
    instance_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    rack_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field(INT32, "0+", default=-1)
    topology: Topology | None = field(Topology, "0+", nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    process_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    user_endpoint: Endpoint | None = field(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] | None = field(Array(KeyValue), "0+", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = field(Array(TaskOffset), "0+", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = field(Array(TaskOffset), "0+", nullable="0+", default=None)
    shutdown_application: bool = field(BOOL, "0+")


class Status(Struct):
    status_code: int = field(INT8, "0+")
    status_detail: str = field(STRING, "0+")


class TopicPartition(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint = field(Endpoint, "0+")
    active_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")
    standby_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_id: str = field(STRING, "0+")
    member_epoch: int = field(INT32, "0+")
    heartbeat_interval_ms: int = field(INT32, "0+")
    acceptable_recovery_lag: int = field(INT32, "0+")
    task_offset_interval_ms: int = field(INT32, "0+")
    status: list[Status] | None = field(Array(Status), "0+", nullable="0+")
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), "0+", nullable="0+", default=None)
    endpoint_information_epoch: int = field(INT32, "0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        Array(EndpointToPartitions), "0+", nullable="0+", default=None
    )
