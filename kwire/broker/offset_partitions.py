"""Which of the partitions that a request about a group's offsets names are there, and may be read by the client."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kwire.broker.session import Session
from kwire.protocol.errors import ErrorCode
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker


class _Topic(Protocol):
    name: str
    partitions: list[Any]


T = TypeVar("T", bound=_Topic)


def sort_out(broker: Broker, session: Session, topics: Iterable[T]) -> tuple[list[T], list[tuple[T, ErrorCode]]]:
    """The topics with their partitions that are there; and those with the others, with what these are answered.

    A topic that the client may not read is TOPIC_AUTHORIZATION_FAILED, what is not there, or about to go,
    UNKNOWN_TOPIC_OR_PARTITION.
    """
    image, going = broker.store.image, broker.coordinators.going
    valid, refused = [], []
    for topic in topics:
        if not session.allows(Operation.READ, ResourceType.TOPIC, topic.name):
            refused.append((topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        found = image.topics.get(topic.name)
        if found is None or going.get(topic.name) == found.id:
            if topic.partitions:
                refused.append((topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        count = len(found.partitions)
        known = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        unknown = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
        if known:
            valid.append(_with(topic, known))
        if unknown:
            refused.append((_with(topic, unknown), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return valid, refused


def merged(*answers: Iterable[T]) -> list[T]:
    """The answers with each topic once: its partitions that were refused stand before the others."""
    found: dict[tuple[str, bytes | None], T] = {}
    for topics in answers:
        for topic in topics:
            present = found.setdefault((topic.name, getattr(topic, "topic_id", None)), topic)
            if present is not topic:
                present.partitions += topic.partitions
    return list(found.values())


def _with(topic: T, partitions: list[Any]) -> T:
    if len(partitions) == len(topic.partitions):
        return topic
    changed = copy(topic)
    changed.partitions = partitions
    return changed
