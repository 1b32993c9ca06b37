"""What a producer is told of a batch."""

from __future__ import annotations

from typing import Final

from kwire.broker.context import RequestRefused
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kwire.protocol.records import InvalidBatch

_NO_LEADER_TOLD: Final = LeaderIdAndEpoch()
"""In all answers to what was appended. Never changed."""

_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Refusals with which Apache Kafka does not tell where the log starts; with all others it does."""


def taken(index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> PartitionProduceResponse:
    """It was appended."""
    return PartitionProduceResponse(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        current_leader=_NO_LEADER_TOLD,
    )


def refused(index: int, error: KafkaError, log_start_offset: int = -1) -> PartitionProduceResponse:
    """It was not appended. `log_start_offset`: where the log of the partition starts, if that was found."""
    told = PartitionProduceResponse(index=index, error_code=error.code, base_offset=-1, log_start_offset=-1)
    if log_start_offset >= 0 and error.code not in _WITHOUT_LOG_START:
        told.log_start_offset = log_start_offset
        told.error_message = error.message
    if isinstance(error, InvalidBatch):
        told.error_message = error.message
        told.record_errors = [
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            for batch_index, message in error.record_errors
        ]
    return told


def refused_silently(error: KafkaError | None = None) -> RequestRefused:
    """With acks=0 there is no answer that could say so; a closed connection makes the client ask for metadata."""
    return RequestRefused("a Produce with acks=0 failed" + (f": {error}" if error is not None else ""))


def all_refused(request: ProduceRequest, error: KafkaError) -> ProduceResponse:
    """Nothing of it was appended. Raises RequestRefused where acks are 0."""
    if request.acks == 0:
        raise refused_silently(error)
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[refused(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )
