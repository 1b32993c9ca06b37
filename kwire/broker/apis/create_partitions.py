"""CreatePartitions (key 37): more partitions at the end of topics (KIP-195)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kwire.cluster.topics import NewPartitions
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    if request.timeout_ms <= 0:
        # Apache Kafka's controller begins nothing for which there is no time.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    occurrences = Counter(topic.name for topic in request.topics)
    asked = []
    response = CreatePartitionsResponse()
    for topic in request.topics:
        # A topic named twice the controller refuses for that, whoever asks.
        if occurrences[topic.name] > 1 or context.session.allows(Operation.ALTER, ResourceType.TOPIC, topic.name):
            by_hand = None if topic.assignments is None else [item.broker_ids for item in topic.assignments]
            asked.append(NewPartitions(topic.name, topic.count, by_hand))
        else:
            response.results.append(_told(topic.name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    for result in await broker.controller.create_partitions(asked, validate_only=request.validate_only):
        response.results.append(_told(result.name or "", result.error))
    return response


def failed(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_told(topic.name, error) for topic in request.topics])


def _told(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=error.code, error_message=error.message)
