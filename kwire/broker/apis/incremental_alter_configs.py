"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single configs (KIP-339)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kwire.broker.config_changes import change_each, change_incrementally, told
from kwire.config.alter import Alteration
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    async def change(resource: AlterConfigsResource) -> None:
        await change_incrementally(
            broker,
            context.session,
            resource.resource_type,
            resource.resource_name,
            [Alteration(config.name, config.config_operation, config.value) for config in resource.configs],
            validate_only=request.validate_only,
        )

    return _response(await change_each(broker, request.resources, change))


def failed(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return _response((resource, error) for resource in request.resources)


def _response(outcomes: Iterable[tuple[AlterConfigsResource, KafkaError | None]]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(**told(resource, error)) for resource, error in outcomes]
    )
