"""The resources that have configs: their types, who may see or change them, how a broker is named."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from kwire.config.types import parse_integer
from kwire.protocol.errors import UNAUTHORIZED, ErrorCode, KafkaError
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.session import Session


class ConfigResource(IntEnum):
    """The resource types of the config APIs (Kafka's `ConfigResource.Type`).

    Client metrics subscriptions (KIP-714) never have any configs here: nothing would act on them.
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def broker_number(name: str) -> int | None:
    """The broker that a resource's name means; None where it is no number."""
    return parse_integer(name, 32)


def check_allowed(session: Session, operation: Operation, kind: ConfigResource, name: str) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED."""
    if kind is ConfigResource.TOPIC:
        allowed = session.allows(operation, ResourceType.TOPIC, name)
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif kind is ConfigResource.GROUP:
        allowed = session.allows(operation, ResourceType.GROUP, name)
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    else:
        allowed = session.allows(operation, ResourceType.CLUSTER)
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not allowed:
        raise KafkaError(code, UNAUTHORIZED[code])
