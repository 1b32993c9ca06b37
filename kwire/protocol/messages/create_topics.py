"""CreateTopics (API key 19): creates topics."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, UUID, Array


class CreatableReplicaAssignment(Struct):
    partition_index: int = field(INT32, "0+")
    broker_ids: list[int] = field(Array(INT32), "0+")


class CreatableTopicConfig(Struct):
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")


class CreatableTopic(Struct):
    name: str = field(STRING, "0+")
    num_partitions: int = field(INT32, "0+")
    replication_factor: int = field(INT16, "0+")
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment), "0+")
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig), "0+")


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible_from=5):
    """The request, versions 2 to 7."""

    topics: list[CreatableTopic] = field(Array(CreatableTopic), "0+")
    timeout_ms: int = field(INT32, "0+", default=60000)
    validate_only: bool = field(BOOL, "1+")


class CreatableTopicConfigs(Struct):
    name: str = field(STRING, "5+")
    value: str | None = field(STRING, "5+", nullable="5+")
    read_only: bool = field(BOOL, "5+")
    config_source: int = field(INT8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL, "5+")


class CreatableTopicResult(Struct):
    name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "7+", ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field(INT16, "5+", tag=0, ignorable=True)
    num_partitions: int = field(INT32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(INT16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible_from=5):
    """The response, versions 2 to 7."""

    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult), "0+")
