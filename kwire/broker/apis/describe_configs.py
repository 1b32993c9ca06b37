"""DescribeConfigs (key 32): configs with values, sources, synonyms, types, documentation (KIP-133, KIP-226)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker import loggers
from kwire.broker.config_resources import ConfigResource, broker_number, check_allowed
from kwire.config.describe import (
    ConfigRow,
    ConfigSource,
    describe_broker,
    describe_broker_defaults,
    describe_group,
    describe_topic,
)
from kwire.config.types import Type
from kwire.metadata.names import check_name
from kwire.ports.turns import Turn
from kwire.protocol.errors import MALFORMED, ErrorCode, KafkaError
from kwire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kwire.security.authorizer import Operation

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_NAMED = {ConfigResource.GROUP: "Group name", ConfigResource.CLIENT_METRICS: "Client metrics subscription name"}


async def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response, turn = DescribeConfigsResponse(), Turn(broker.clock)
    for resource in request.resources:
        if resource.resource_type not in ConfigResource._value2member_map_:
            raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED)
    for resource in request.resources:
        try:
            rows = _rows(broker, context, resource)
        except KafkaError as error:
            response.results.append(_failed(resource, error))
        else:
            response.results.append(
                DescribeConfigsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=[_told(row, request) for row in rows],
                )
            )
        await turn.share()
    return response


def failed(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, error) for resource in request.resources])


def _rows(broker: Broker, context: RequestContext, resource: DescribeConfigsResource) -> list[ConfigRow]:
    kind, name = ConfigResource(resource.resource_type), resource.resource_name
    names = None if resource.configuration_keys is None else frozenset(resource.configuration_keys)
    check_allowed(context.session, Operation.DESCRIBE_CONFIGS, kind, name)
    image = broker.store.image
    if kind is ConfigResource.TOPIC:
        check_name(name)
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(broker.config, image.config("topic", name), names)
    if kind in _NAMED and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{_NAMED[kind]} must not be empty")
    if kind is ConfigResource.GROUP:
        return describe_group(broker.config, image.config("group", name), names)
    if kind is ConfigResource.CLIENT_METRICS:
        return []
    _check_broker(broker, name, default_too=kind is ConfigResource.BROKER)
    if kind is ConfigResource.BROKER_LOGGER:
        return [
            _logger_row(logger, level) for logger, level in loggers.levels().items() if not names or logger in names
        ]
    if not name:
        return describe_broker_defaults(image.config("broker", ""), names)
    return describe_broker(broker.config, names)


def _check_broker(broker: Broker, name: str, *, default_too: bool) -> None:
    """Raises INVALID_REQUEST where `name` is not this broker's id (nor empty, which means all brokers)."""
    if not name:
        if default_too:
            return
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    number = broker_number(name)
    if number is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != broker.id:
        or_empty = " or empty string," if default_too else ""
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {broker.id}{or_empty} but received {name}"
        )


def _logger_row(logger: str, level: str) -> ConfigRow:
    return ConfigRow(logger, level, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG, False, False, Type.UNKNOWN, "", ())


def _told(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    told = DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.sensitive,
        config_type=row.type,
        documentation=row.documentation if request.include_documentation or not row.documentation else None,
    )
    if request.include_synonyms:
        told.synonyms = [
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in row.synonyms
        ]
    return told


def _failed(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
