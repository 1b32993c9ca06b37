"""CreateTopics (key 19): topics by count and factor or by assignment, with configs; or only checks that they could be.

A topic can be produced to when the answer comes. v5 tells partitions and configs of what was created (KIP-525), v7 the
topic id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kwire.cluster.topics import CLUSTER_METADATA_TOPIC, NewTopic, Result
from kwire.config.describe import describe_topic
from kwire.metadata.changes import TopicCreated
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.session import Session

_TELLS_CONFIGS = 5


async def handle(broker: Broker, context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    if request.timeout_ms <= 0:
        # Apache Kafka's controller begins nothing for which there is no time.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    session = context.session
    everywhere = session.allows(Operation.CREATE, ResourceType.CLUSTER)
    occurrences = Counter(topic.name for topic in request.topics)
    asked = []
    response = CreateTopicsResponse()
    for topic in request.topics:
        # What nobody can have, a name given twice and KRaft's own topic, the controller refuses with other words.
        impossible = occurrences[topic.name] > 1 or topic.name == CLUSTER_METADATA_TOPIC
        if impossible or everywhere or session.allows(Operation.CREATE, ResourceType.TOPIC, topic.name):
            asked.append(
                NewTopic(
                    topic.name,
                    topic.num_partitions,
                    topic.replication_factor,
                    [(item.partition_index, item.broker_ids) for item in topic.assignments],
                    [(config.name, config.value) for config in topic.configs],
                )
            )
        else:
            refusal = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            response.topics.append(_failed(topic.name, refusal))
    results = await broker.controller.create_topics(asked, validate_only=request.validate_only)
    turn = Turn(broker.clock)
    for result in results:
        response.topics.append(_told(broker, session, result, context.api_version))
        await turn.share()
    return response


def failed(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


def _failed(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _told(broker: Broker, session: Session, result: Result, version: int) -> CreatableTopicResult:
    if result.error is not None:
        return _failed(result.name or "", result.error)
    assert isinstance(result.change, TopicCreated)
    topic = result.change.topic
    told = CreatableTopicResult(name=topic.name, topic_id=topic.id, error_message=None)
    if version < _TELLS_CONFIGS:
        return told
    if not session.allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        told.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return told
    told.num_partitions = len(topic.partitions)
    told.replication_factor = len(topic.partitions[0].replicas)
    told.configs = [
        CreatableTopicConfigs(
            name=row.name,
            value=result.change.configs.get(row.name, row.value),  # as the request has it
            read_only=row.read_only,
            config_source=row.source,
            is_sensitive=row.sensitive,
        )
        for row in describe_topic(broker.config, result.change.configs)
    ]
    return told
