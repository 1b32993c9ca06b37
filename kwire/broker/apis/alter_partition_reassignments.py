"""AlterPartitionReassignments (key 45): which brokers are to hold partitions (KIP-455).

v1 brought allow_replication_factor_change. The stock kafka-reassign-partitions tool asks for this before it asks for
log dirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.reassignment import Reassignment, reassign
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not context.session.allows(Operation.ALTER, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = [
        Reassignment(topic.name, partition.partition_index, partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    ]
    may_change_factor = request.allow_replication_factor_change
    errors = iter(
        await broker.controller.decide(lambda image: reassign(image, asked, may_change_factor=may_change_factor))
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_told(partition.partition_index, next(errors)) for partition in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def failed(request: AlterPartitionReassignmentsRequest, error: KafkaError) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_told(partition.partition_index, error) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _told(index: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=index, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message or None
    )
