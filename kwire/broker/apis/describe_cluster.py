"""DescribeCluster (key 60): cluster id, controller, brokers (KIP-700).

v1 names the kind of endpoint asked for (KIP-919): only brokers here, there are no KRaft controllers. v2 can include
fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.topic_state import live_brokers
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kwire.security.authorizer import ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_BROKERS = 1
_CONTROLLERS = 2


async def handle(broker: Broker, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    image, session = broker.store.image, context.session
    response = DescribeClusterResponse(cluster_id=image.cluster_id, controller_id=image.controller_id)
    for other, endpoint in live_brokers(image, session.listener):
        response.brokers.append(
            DescribeClusterBroker(broker_id=other.id, host=endpoint.host, port=endpoint.port, rack=other.rack)
        )
    if request.include_fenced_brokers:
        for other in image.brokers.values():
            fenced_at = other.endpoint(session.listener) if other.fenced else None
            if fenced_at is not None:
                response.brokers.append(
                    DescribeClusterBroker(
                        broker_id=other.id, host=fenced_at.host, port=fenced_at.port, rack=other.rack, is_fenced=True
                    )
                )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = session.authorized_operations(ResourceType.CLUSTER)
    return response


def failed(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message, cluster_id="")
