"""Metadata (key 3): brokers, topics, leaders; creates missing topics where that is allowed.

v4 lets a client forbid creation, v7 brought leader epochs (KIP-320), v8 authorized operations (KIP-430), v10 topic ids
(KIP-516), v12 asking by topic id, v13 the error at the top (KIP-1102). v0 means "all topics" by an empty list.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from kwire.broker.metadata_partitions import encode_in_turns
from kwire.broker.topic_state import live_brokers, missing_topic_error
from kwire.cluster.internal_topics import COORDINATORS_TOPICS
from kwire.cluster.topics import NewTopic
from kwire.metadata.image import MetadataImage, TopicImage
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.ports.turns import Turn
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.session import Session


async def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    version, session = context.api_version, context.session
    _check(version, request)
    everything = request.topics is None or (version == 0 and not request.topics)
    # Each topic once; where any is asked for by id, Kafka looks at no names.
    ids = dict.fromkeys(topic.topic_id for topic in request.topics or () if topic.topic_id != uuids.ZERO)
    names = {} if ids else dict.fromkeys(topic.name or "" for topic in request.topics or ())
    failures = await _create_missing(broker, session, request, names) if names else {}
    image = broker.store.image
    tell = _Telling(broker, image, context, request)
    told: Iterable[MetadataResponseTopic]
    if everything:
        told = (
            tell.topic(topic)
            for topic in image.topics.values()
            if session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        )
    else:
        told = chain(map(tell.by_id, ids), (tell.by_name(name, failures.get(name)) for name in names))
    topics, turn = [], Turn(broker.clock)
    for topic in told:
        topics.append(topic)
        await encode_in_turns(topic, version, turn)
        await turn.share()
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=other.id, host=endpoint.host, port=endpoint.port, rack=other.rack)
            for other, endpoint in live_brokers(image, session.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = session.authorized_operations(ResourceType.CLUSTER)
    return response


def failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
        error_code=error.code,
    )


def _check(version: int, request: MetadataRequest) -> None:
    if version >= 12:
        return
    for topic in request.topics or ():
        if topic.name is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Topic name can not be null for version {version}.")
        if topic.topic_id != uuids.ZERO:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic IDs are not supported in requests for version 10-11.")


async def _create_missing(
    broker: Broker, session: Session, request: MetadataRequest, names: Iterable[str]
) -> dict[str, ErrorCode]:
    """Creates the named topics that do not exist, if both sides allow it; returns what failed."""
    if not request.allow_auto_topic_creation or not broker.config["auto.create.topics.enable"]:
        return {}
    image = broker.store.image
    missing = [
        name
        for name in names
        if name not in image.topics
        and (name not in INTERNAL_TOPICS or name in COORDINATORS_TOPICS)
        and session.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]
    failures: dict[str, ErrorCode] = {}
    allowed = []
    for name in missing:
        if session.allows(Operation.CREATE, ResourceType.CLUSTER) or session.allows(
            Operation.CREATE, ResourceType.TOPIC, name
        ):
            allowed.append(name)
        else:
            failures[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if allowed:
        try:
            results = await broker.controller.create_topics([_new_topic(broker, name) for name in allowed])
        except KafkaError as error:  # none can be created; of those that are there the client is told all the same
            return failures | dict.fromkeys(allowed, error.code)
        for result in results:
            # Somebody else may have been quicker: then the topic is simply there.
            if result.error is not None and result.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                failures[result.name or ""] = result.error.code
    return failures


def _new_topic(broker: Broker, name: str) -> NewTopic:
    """By the broker's defaults; the coordinators' topics have some of their own."""
    internal = COORDINATORS_TOPICS.get(name)
    return NewTopic(name) if internal is None else internal(broker.config)


class _Telling:
    """Tells topics to one client."""

    def __init__(self, broker: Broker, image: MetadataImage, context: RequestContext, request: MetadataRequest) -> None:
        self._image = image
        self._partitions = broker.metadata_partitions
        self._session = context.session
        self._version = context.api_version
        self._with_operations = request.include_topic_authorized_operations

    def by_id(self, topic_id: bytes) -> MetadataResponseTopic:
        topic = self._image.topic_by_id(topic_id)
        if topic is None or not self._session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            # A topic that may not be described is, by id, as unknown as one that does not exist.
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        return self.topic(topic)

    def by_name(self, name: str, failure: ErrorCode | None) -> MetadataResponseTopic:
        """`failure`: why the topic could not be created."""
        if not self._session.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        topic = self._image.topics.get(name)
        if topic is not None:
            return self.topic(topic)
        told = MetadataResponseTopic(
            error_code=failure or missing_topic_error(name), name=name, is_internal=name in INTERNAL_TOPICS
        )
        return self._operations(told, name)

    def topic(self, topic: TopicImage) -> MetadataResponseTopic:
        told = MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=self._partitions.of(self._image, topic, self._session.listener, self._version),
        )
        return self._operations(told, topic.name)

    def _operations(self, told: MetadataResponseTopic, name: str) -> MetadataResponseTopic:
        if self._with_operations:
            told.topic_authorized_operations = self._session.authorized_operations(ResourceType.TOPIC, name)
        return told
