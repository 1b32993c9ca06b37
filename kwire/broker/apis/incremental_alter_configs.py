"""IncrementalAlterConfigs (key 44): sets, deletes, appends to and subtracts from single configs (KIP-339)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kwire.broker.config_resources import change_incrementally
from kwire.config.alter import Alteration
from kwire.protocol.errors import ErrorCode, KafkaError
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
    response = IncrementalAlterConfigsResponse()
    occurrences = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        error = None
        try:
            if occurrences[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await change_incrementally(
                broker,
                context.session,
                resource.resource_type,
                resource.resource_name,
                [Alteration(config.name, config.config_operation, config.value) for config in resource.configs],
                validate_only=request.validate_only,
            )
        except KafkaError as raised:
            error = raised
        response.responses.append(_told(resource, error))
    return response


def failed(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=[_told(resource, error) for resource in request.resources])


def _told(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
