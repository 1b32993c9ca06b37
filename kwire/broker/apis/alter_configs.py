"""AlterConfigs (key 33): replaces all configs of a resource. Only older clients use it (KIP-133)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire.broker.config_changes import change_configs, change_each, told
from kwire.config.alter import check_replacement
from kwire.config.definition import ConfigKey
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def change(resource: AlterConfigsResource) -> None:
        configs = [(config.name, config.value) for config in resource.configs]

        def decide(current: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> Mapping[str, str]:
            """What the request lists, whatever is set now."""
            check_replacement(configs)
            return {name: value for name, value in configs if value is not None}

        await change_configs(
            broker,
            context.session,
            resource.resource_type,
            resource.resource_name,
            decide,
            validate_only=request.validate_only,
        )

    return _response(await change_each(broker, request.resources, change))


def failed(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return _response((resource, error) for resource in request.resources)


def _response(outcomes: Iterable[tuple[AlterConfigsResource, KafkaError | None]]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(**told(resource, error)) for resource, error in outcomes]
    )
