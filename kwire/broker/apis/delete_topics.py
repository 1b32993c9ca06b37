"""DeleteTopics (key 20): by name, from v6 on by name or id. A topic is gone when the answer comes."""

from __future__ import annotations

from collections import Counter
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
    from kwire.cluster.tiering.tiering import Tiering

Asked = tuple[str | None, bytes]
"""By name (the id zero) or by id (the name None)."""


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
    allowed: list[Asked] = []
    for name, topic_id in asked:
        topic = image.topic_by_id(topic_id) if name is None else None
        known = name if name is not None else topic.name if topic is not None else None
        # What is said twice, or in two ways, the controller refuses for that, whoever asks.
        if (
            _impossible(occurrences, name, topic_id)
            or known is None
            or session.allows(Operation.DELETE, ResourceType.TOPIC, known)
        ):
            allowed.append((name, topic_id))
        elif name is None and not session.allows(Operation.DESCRIBE, ResourceType.TOPIC, known):
            # Who may not describe a topic does not learn what its id stands for.
            refused.append(Result(None, topic_id, error=unauthorized))
        else:
            refused.append(Result(known, topic_id, error=unauthorized))
    if broker.tiering is not None:
        allowed, unmarked = await _mark(broker.tiering, image, occurrences, allowed)
        refused += unmarked
    results = refused + await broker.controller.delete_topics(allowed)
    return DeleteTopicsResponse(responses=[_told(result) for result in results])


def failed(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[_told(Result(name, topic_id, error=error)) for name, topic_id in _asked(request)]
    )


def _impossible(occurrences: Counter[Asked], name: str | None, topic_id: bytes) -> bool:
    return occurrences[name, topic_id] > 1 or (name is not None and topic_id != uuids.ZERO)


async def _mark(
    tiering: Tiering, image: MetadataImage, occurrences: Counter[Asked], asked: list[Asked]
) -> tuple[list[Asked], list[Result]]:
    """Says what is about to be deleted; returns what may be, and why the others may not."""
    present: dict[Asked, TopicImage] = {}
    for name, topic_id in asked:
        topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
        if topic is not None and not _impossible(occurrences, name, topic_id):
            present[name, topic_id] = topic
    errors = await tiering.mark_deleted({topic.id: topic for topic in present.values()}.values())
    refused = {each: topic for each, topic in present.items() if topic.id in errors}
    return (
        [each for each in asked if each not in refused],
        [Result(topic.name, topic_id, error=errors[topic.id]) for (_, topic_id), topic in refused.items()],
    )


def _asked(request: DeleteTopicsRequest) -> list[Asked]:
    by_name: list[Asked] = [(name, uuids.ZERO) for name in request.topic_names]
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
