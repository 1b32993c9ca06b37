"""ShareAcknowledge (API key 79): acknowledges records acquired by a member of a share group."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array


class AcknowledgementBatch(Struct):
    first_offset: int = field(INT64, "0+")
    last_offset: int = field(INT64, "0+")
    acknowledge_types: list[int] = field(Array(INT8), "0+")


class AcknowledgePartition(Struct):
    partition_index: int = field(INT32, "0+")
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch), "0+")


class AcknowledgeTopic(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[AcknowledgePartition] = field(Array(AcknowledgePartition), "0+")


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible_from=0):
    """The request, versions 1 to 2."""

    group_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_id: str | None = field(STRING, "0+", nullable="0+")
    share_session_epoch: int = field(INT32, "0+")
    is_renew_ack: bool = field(BOOL, "2+")
    topics: list[AcknowledgeTopic] = field(Array(AcknowledgeTopic), "0+")


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")


class PartitionData(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "0+")


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class NodeEndpoint(Struct):
    node_id: int = field(INT32, "0+")
    host: str = field(STRING, "0+")
    port: int = field(INT32, "0+")
    rack: str | None = field(STRING, "0+", nullable="0+", default=None)


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible_from=0):
    """The response, versions 1 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = field(INT32, "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse), "0+")
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), "0+")
