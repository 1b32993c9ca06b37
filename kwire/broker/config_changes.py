"""Changing configs of resources: what AlterConfigs and IncrementalAlterConfigs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kwire.broker import loggers
from kwire.broker.config_resources import ConfigResource, broker_number, check_allowed
from kwire.config.alter import Alteration, Op, alter, changed, check_alterations
from kwire.config.definition import ConfigKey
from kwire.config.dynamic import validate_dynamic
from kwire.config.errors import ConfigError, InvalidRequest
from kwire.config.group import validate_group_configs
from kwire.config.group_keys import GROUP_KEYS
from kwire.config.keys import BROKER_KEYS
from kwire.config.tiered_topics import check_tiered
from kwire.config.topic import validate_topic_configs
from kwire.config.topic_keys import TOPIC_KEYS
from kwire.metadata.changes import Change, ConfigsChanged
from kwire.metadata.image import MetadataImage
from kwire.metadata.names import check_name
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.authorizer import Operation

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.session import Session

Decide = Callable[[Mapping[str, str], Mapping[str, ConfigKey]], Mapping[str, str]]
"""From what is set now, and the keys there are, to what shall be set; raises ConfigError or InvalidRequest."""


class NamedResource(Protocol):
    """What a request to change configs says of each resource, besides the configs."""

    resource_type: int
    resource_name: str


Resource = TypeVar("Resource", bound=NamedResource)


async def change_each(
    broker: Broker, resources: Sequence[Resource], change: Callable[[Resource], Awaitable[None]]
) -> list[tuple[Resource, KafkaError | None]]:
    """Changes one resource after the other; each with why that failed. One that is named twice is not changed."""
    occurrences = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes: list[tuple[Resource, KafkaError | None]] = []
    turn = Turn(broker.clock)
    for resource in resources:
        try:
            if occurrences[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await change(resource)
        except KafkaError as error:
            outcomes.append((resource, error))
        else:
            outcomes.append((resource, None))
        await turn.share()
    return outcomes


def told(resource: NamedResource, error: KafkaError | None) -> dict[str, Any]:
    """The fields of both APIs' AlterConfigsResourceResponse."""
    return {
        "error_code": ErrorCode.NONE if error is None else error.code,
        "error_message": None if error is None else error.message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


async def change_configs(
    broker: Broker, session: Session, number: int, name: str, decide: Decide, *, validate_only: bool
) -> None:
    """Changes one resource's configs, or only checks that it could. Raises KafkaError."""
    if number not in ConfigResource._value2member_map_ or number == ConfigResource.BROKER_LOGGER:
        # Loggers are changed incrementally only.
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {number}")
    kind = ConfigResource(number)
    check_allowed(session, Operation.ALTER_CONFIGS, kind, name)
    if kind is ConfigResource.CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "This version of kwire has no client metrics subscriptions.")

    def decision(image: MetadataImage) -> tuple[None, Sequence[Change]]:
        if kind is ConfigResource.TOPIC:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_name(name)
            if name not in image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
            current = image.config("topic", name)
            wanted = decide(current, TOPIC_KEYS)
            validate_topic_configs(broker.config, wanted)
            check_tiered(broker.config, current, wanted)
            store_kind = "topic"
        elif kind is ConfigResource.GROUP:
            current = image.config("group", name)
            wanted = decide(current, GROUP_KEYS)
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
            validate_group_configs(broker.config, wanted)
            store_kind = "group"
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
