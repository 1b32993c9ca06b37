"""StreamsGroupDescribe (API key 89): tells the state, the topology and the members of streams groups."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, INT64, STRING, UINT16, Array


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0", flexible_from=0):
    """The request, version 0."""

    group_ids: list[str] = field(Array(STRING), "0+")
    include_authorized_operations: bool = field(BOOL, "0+")


class KeyValue(Struct):
    key: str = field(STRING, "0+")
    value: str = field(STRING, "0+")


class TopicInfo(Struct):
    name: str = field(STRING, "0+")
    partitions: int = field(INT32, "0+")
    replication_factor: int = field(INT16, "0+")
    topic_configs: list[KeyValue] = field(Array(KeyValue), "0+")


class Subtopology(Struct):
    subtopology_id: str = field(STRING, "0+")
    source_topics: list[str] = field(Array(STRING), "0+")
    repartition_sink_topics: list[str] = field(Array(STRING), "0+")
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo), "0+")
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo), "0+")


class Topology(Struct):
    epoch: int = field(INT32, "0+")
    subtopologies: list[Subtopology] | None = field(Array(Subtopology), "0+", nullable="0+", default=None)


class Endpoint(Struct):
    host: str = field(STRING, "0+")
    port: int = field(UINT16, "0+")


class TaskOffset(Struct):
    subtopology_id: str = field(STRING, "0+")
    partition: int = field(INT32, "0+")
    offset: int = field(INT64, "0+")


class TaskIds(Struct):
    subtopology_id: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class Assignment(Struct):
    active_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    standby_tasks: list[TaskIds] = field(Array(TaskIds), "0+")
    warmup_tasks: list[TaskIds] = field(Array(TaskIds), "0+")


class Member(Struct):
    member_id: str = field(STRING, "0+")
    member_epoch: int = field(INT32, "0+")
    instance_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    rack_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    topology_epoch: int = field(INT32, "0+")
    process_id: str = field(STRING, "0+")
    user_endpoint: Endpoint | None = field(Endpoint, "0+", nullable="0+", default=None)
    client_tags: list[KeyValue] = field(Array(KeyValue), "0+")
    task_offsets: list[TaskOffset] = field(Array(TaskOffset), "0+")
    task_end_offsets: list[TaskOffset] = field(Array(TaskOffset), "0+")
    assignment: Assignment = field(Assignment, "0+")
    target_assignment: Assignment = field(Assignment, "0+")
    is_classic: bool = field(BOOL, "0+")


class DescribedGroup(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    group_id: str = field(STRING, "0+")
    group_state: str = field(STRING, "0+")
    group_epoch: int = field(INT32, "0+")
    assignment_epoch: int = field(INT32, "0+")
    topology: Topology | None = field(Topology, "0+", nullable="0+", default=None)
    members: list[Member] = field(Array(Member), "0+")
    authorized_operations: int = field(INT32, "0+", default=-0x80000000)


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")
