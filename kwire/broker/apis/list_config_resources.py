"""ListConfigResources (key 74): the names of what has configs (KIP-1142).

v0 asked for client metrics subscriptions only, of which kwire has none; v1 names the types wanted, none meaning all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.config_resources import ConfigResource
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.list_config_resources import (
    ConfigResource as ListedResource,
)
from kwire.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    if not context.session.allows(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    wanted = set(request.resource_types) or {*ConfigResource}
    unknown = wanted - {*ConfigResource}
    if unknown:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource types {sorted(unknown)}.")
    image = broker.store.image
    names: dict[ConfigResource, list[str]] = {
        ConfigResource.TOPIC: sorted(image.topics),
        ConfigResource.BROKER: [str(broker_id) for broker_id in sorted(image.brokers)],
        ConfigResource.BROKER_LOGGER: [str(broker_id) for broker_id in sorted(image.brokers)],
        ConfigResource.GROUP: sorted(name for kind, name in image.configs if kind == "group"),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ListedResource(resource_name=name, resource_type=kind)
            for kind in ConfigResource
            if kind in wanted
            for name in names.get(kind, ())
        ]
    )


def failed(request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)
