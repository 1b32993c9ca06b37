"""The resources that have configs, and changing them: what AlterConfigs and IncrementalAlterConfigs share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

from kwire.broker import loggers
from kwire.config.alter import Alteration, Op, alter, changed, check_alterations
from kwire.config.definition import ConfigKey
from kwire.config.dynamic import validate_dynamic
from kwire.config.errors import ConfigError, InvalidRequest
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic import validate_topic_configs
from kwire.config.topic_keys import TOPIC_KEYS
from kwire.metadata.changes import Change, ConfigsChanged
from kwire.metadata.image import MetadataImage
from kwire.metadata.names import check_name
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import Session


class ConfigResource(IntEnum):
    """The resource types of the config APIs (Kafka's `ConfigResource.Type`).

    Client metrics subscriptions (KIP-714) and groups never have any configs here: nothing would act on them.
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


Decide = Callable[[Mapping[str, str], Mapping[str, ConfigKey]], Mapping[str, str]]
"""From what is set now, and the keys there are, to what shall be set; raises ConfigError or InvalidRequest."""


_BROKER_ID = re.compile(r"[+-]?[0-9]+")


def broker_number(name: str) -> int | None:
    """The broker that a resource's name means; None where it is no number."""
    return int(name) if _BROKER_ID.fullmatch(name) else None


def check_allowed(session: Session, operation: Operation, kind: ConfigResource, name: str) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED."""
    if kind is ConfigResource.TOPIC:
        if not session.allows(operation, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif kind is ConfigResource.GROUP:
        if not session.allows(operation, ResourceType.GROUP, name):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    elif not session.allows(operation, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


async def change_configs(
    broker: Broker, session: Session, number: int, name: str, decide: Decide, *, validate_only: bool
) -> None:
    """Changes one resource's configs, or only checks that it could. Raises KafkaError."""
    if number not in ConfigResource._value2member_map_ or number == ConfigResource.BROKER_LOGGER:
        # Loggers are changed incrementally only.
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {number}")
    kind = ConfigResource(number)
    check_allowed(session, Operation.ALTER_CONFIGS, kind, name)
    if kind in (ConfigResource.CLIENT_METRICS, ConfigResource.GROUP):
        what = "client metrics subscriptions" if kind is ConfigResource.CLIENT_METRICS else "configs of groups"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"This version of kwire has no {what}.")

    def decision(image: MetadataImage) -> tuple[None, Sequence[Change]]:
        if kind is ConfigResource.TOPIC:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_name(name)
            if name not in image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            current = image.config("topic", name)
            wanted = decide(current, TOPIC_KEYS)
            validate_topic_configs(wanted)
            store_kind = "topic"
        else:
            if name:
                _check_node(broker, name, f"Unexpected broker id, expected {broker.id}, but received {name}")
            current = image.config("broker", name)
            wanted = decide(current, BROKER_KEYS)
            validate_dynamic(broker.config, wanted, per_broker=bool(name))
            store_kind = "broker"
        to_set, removed = changed(current, wanted)
        if validate_only or not (to_set or removed):
            return None, []
        return None, [ConfigsChanged(store_kind, name, to_set, removed)]

    try:
        await broker.controller.decide(decision)
    except InvalidRequest as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


async def change_incrementally(
    broker: Broker, session: Session, number: int, name: str, alterations: Sequence[Alteration], *, validate_only: bool
) -> None:
    """Changes single keys of one resource (KIP-339). Raises KafkaError."""
    try:
        check_alterations(alterations)
    except InvalidRequest as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    if number == ConfigResource.BROKER_LOGGER:
        check_allowed(session, Operation.ALTER_CONFIGS, ConfigResource.BROKER_LOGGER, name)
        _check_node(broker, name, f"Unexpected node id. Expected {broker.id}, but received {name}")
        _change_loggers(alterations, validate_only=validate_only)
        return

    def decide(current: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> Mapping[str, str]:
        return alter(current, alterations, keys)

    await change_configs(broker, session, number, name, decide, validate_only=validate_only)


def _check_node(broker: Broker, name: str, unexpected: str) -> None:
    """Raises INVALID_REQUEST, with that text, where the name does not mean this broker."""
    number = broker_number(name)
    if number is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if number != broker.id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, unexpected)


def _change_loggers(alterations: Sequence[Alteration], *, validate_only: bool) -> None:
    """Levels live as long as the process, as in Kafka (KIP-412)."""
    for name, op, value in alterations:
        if op not in (Op.SET, Op.DELETE):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{Op(op).name} operation is not allowed for the BROKER_LOGGER resource"
            )
        if name not in loggers.levels():
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if op == Op.SET and value not in loggers.LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(sorted(loggers.LEVELS))}",
            )
        if op == Op.DELETE and name == loggers.ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Removing the log level of the {name} logger is not allowed")
    if not validate_only:
        for name, op, value in alterations:
            loggers.set_level(name, value if op == Op.SET else None)
