"""WriteTxnMarkers (key 27): a transaction coordinator or an admin ends transactions on partitions led here (KIP-98).

v2 says under which transaction version the marker is written (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.marker_appends import EndMarker, append_markers
from kwire.coordinator.runtime.outcome import Producer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kwire.protocol.records.header import NO_PRODUCER_ID
from kwire.protocol.types import TopicPartition
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    session = context.session
    if not any(session.allows(may, ResourceType.CLUSTER) for may in (Operation.ALTER, Operation.CLUSTER_ACTION)):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for asked in request.markers:
        if _of_nobody(asked) and any(partition in broker.replicas.partitions for partition in _partitions(asked)):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka, which can't make such a marker
    for asked in request.markers:
        marker = EndMarker(
            Producer(asked.producer_id, asked.producer_epoch),
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        results = await append_markers(broker, marker, _partitions(asked))
        if results:
            by_producer.setdefault(asked.producer_id, {}).update(results)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(results))
            for producer_id, results in by_producer.items()
        ]
    )


def failed(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=asked.producer_id, topics=_topics(dict.fromkeys(_partitions(asked), error.code))
            )
            for asked in request.markers
        ]
    )


def _of_nobody(asked: WritableTxnMarker) -> bool:
    """Whether it can't be the marker of a producer."""
    return asked.producer_id == NO_PRODUCER_ID or asked.producer_epoch < 0


def _partitions(asked: WritableTxnMarker) -> list[TopicPartition]:
    return list(dict.fromkeys((topic.name, index) for topic in asked.topics for index in topic.partition_indexes))


def _topics(results: dict[TopicPartition, ErrorCode]) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in results.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return list(topics.values())
