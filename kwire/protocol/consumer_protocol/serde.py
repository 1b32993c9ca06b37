"""Reading subscriptions and assignments; `encode_version_prefixed` writes them."""

from __future__ import annotations

from typing import TypeVar

from kwire.protocol import codec
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.types import Buffer
from kwire.protocol.version_prefixed import INT16, read_prefix

P = TypeVar("P", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def decode(message: type[P], buffer: Buffer) -> P:
    """The message behind its version; a version newer than all known ones is read as the newest, as Kafka does.

    MalformedError, or UnsupportedVersionError for a version below 0.
    """
    return codec.decode(message, min(read_prefix(buffer), message.max_version), buffer, INT16.size)


def subscribed_topics(buffer: Buffer) -> list[str]:
    """The topics of a subscription of whatever version: all begin as the first one, and what follows is not looked at.

    MalformedError, or UnsupportedVersionError for a version below 0.
    """
    if read_prefix(buffer) < 0:
        raise codec.UnsupportedVersionError("a subscription of a version below 0")
    subscription, _ = codec.decode_prefix(ConsumerProtocolSubscription, 0, memoryview(buffer), INT16.size)
    return subscription.topics
