"""DeleteTopics (key 20): by name, from v6 on by name or id. A topic is gone when the answer comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.cluster.topics import Result
from kwire.metadata.image import MetadataImage, TopicImage
from kwire.protocol import uuids
from kwire.protocol.errors import UNAUTHORIZED, ErrorCode, KafkaError
from kwire.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not broker.config["delete.topic.enable"]:
        code = ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        raise KafkaError(code)
    if request.timeout_ms <= 0:
        # Apache Kafka's controller begins nothing for which there is no time.
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    image, session = broker.store.image, context.session
    asked = _asked(request)
    occurrences = Counter(asked)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    unauthorized = KafkaError(code, UNAUTHORIZED[code])
    refused: list[Result] = []
    allowed: list[tuple[str | None, bytes]] = []
    for name, topic_id in asked:
        topic = image.topic_by_id(topic_id) if name is None else None
        known = name if name is not None else topic.name if topic is not None else None
        # What is said twice, or in two ways, the controller refuses for that, whoever asks.
        impossible = occurrences[name, topic_id] > 1 or (name is not None and topic_id != uuids.ZERO)
        if impossible or known is None or session.allows(Operation.DELETE, ResourceType.TOPIC, known):
            allowed.append((name, topic_id))
        elif name is None and not session.allows(Operation.DESCRIBE, ResourceType.TOPIC, known):
            # Who may not describe a topic does not learn what its id stands for.
            refused.append(Result(None, topic_id, error=unauthorized))
        else:
            refused.append(Result(known, topic_id, error=unauthorized))
    if broker.tiering is not None:
        await broker.tiering.mark_deleted(_present(image, allowed))
    results = refused + await broker.controller.delete_topics(allowed)
    return DeleteTopicsResponse(responses=[_told(result) for result in results])


def failed(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[_told(Result(name, topic_id, error=error)) for name, topic_id in _asked(request)]
    )


def _present(image: MetadataImage, asked: list[tuple[str | None, bytes]]) -> Iterator[TopicImage]:
    for name, topic_id in asked:
        topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
        if topic is not None:
            yield topic


def _asked(request: DeleteTopicsRequest) -> list[tuple[str | None, bytes]]:
    by_name: list[tuple[str | None, bytes]] = [(name, uuids.ZERO) for name in request.topic_names]
    return by_name + [(topic.name, topic.topic_id) for topic in request.topics]


def _told(result: Result) -> DeletableTopicResult:
    if result.error is None:
        return DeletableTopicResult(name=result.name, topic_id=result.topic_id)
    return DeletableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=result.error.code,
        error_message=result.error.message,
    )
