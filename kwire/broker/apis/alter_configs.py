"""AlterConfigs (key 33): replaces all configs of a resource. Only older clients use it (KIP-133)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.broker.config_resources import change_configs
from kwire.config.alter import check_replacement
from kwire.config.definition import ConfigKey
from kwire.protocol.errors import ErrorCode, KafkaError
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
    response = AlterConfigsResponse()
    occurrences = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        error = None
        try:
            if occurrences[resource.resource_type, resource.resource_name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await change_configs(
                broker,
                context.session,
                resource.resource_type,
                resource.resource_name,
                _Replacement([(config.name, config.value) for config in resource.configs]),
                validate_only=request.validate_only,
            )
        except KafkaError as raised:
            error = raised
        response.responses.append(_told(resource, error))
    return response


def failed(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_told(resource, error) for resource in request.resources])


class _Replacement:
    """Decides for what the request lists, whatever is set now."""

    def __init__(self, configs: list[tuple[str, str | None]]) -> None:
        self._configs = configs

    def __call__(self, current: Mapping[str, str], keys: Mapping[str, ConfigKey]) -> Mapping[str, str]:
        check_replacement(self._configs)
        return {name: value for name, value in self._configs if value is not None}


def _told(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
