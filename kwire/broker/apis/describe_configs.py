"""DescribeConfigs (key 32): configs with values, sources, synonyms, types, documentation (KIP-133, KIP-226)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker import loggers
from kwire.broker.config_resources import ConfigResource, check_allowed, check_broker_name, resource_type
from kwire.config.describe import (
    ConfigRow,
    ConfigSource,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from kwire.config.types import Type
from kwire.metadata.names import check_name
from kwire.protocol.errors import ErrorCode, KafkaError
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


async def handle(broker: Broker, context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        resource_type(resource.resource_type)  # one that does not exist fails all of it
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
    return response


def failed(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, error) for resource in request.resources])


def _rows(broker: Broker, context: RequestContext, resource: DescribeConfigsResource) -> list[ConfigRow]:
    kind, name, names = resource_type(resource.resource_type), resource.resource_name, resource.configuration_keys
    check_allowed(context.session, Operation.DESCRIBE_CONFIGS, kind, name)
    image = broker.store.image
    if kind is ConfigResource.TOPIC:
        check_name(name)
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(broker.config, image.config("topic", name), names)
    if kind in (ConfigResource.CLIENT_METRICS, ConfigResource.GROUP):
        if not name:
            what = "Group name" if kind is ConfigResource.GROUP else "Client metrics subscription name"
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty")
        return []
    check_broker_name(broker, name, default_too=kind is ConfigResource.BROKER)
    if kind is ConfigResource.BROKER_LOGGER:
        return [
            _logger_row(logger, level) for logger, level in loggers.levels().items() if not names or logger in names
        ]
    if not name:
        return describe_broker_defaults(image.config("broker", ""), names)
    return describe_broker(broker.config, names)


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
