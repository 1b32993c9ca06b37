"""What the tests of the config APIs share."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from tests.broker.scene import Scene

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Types of resources that have configs."""
UNAUTHORIZED = {
    TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    BROKER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    BROKER_LOGGER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    CLIENT_METRICS: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
}
"""What is told of each type of resource to who may not."""
ME = "1"
"""The broker's id, as the name of a resource."""


def resource(kind: int, name: str, keys: Sequence[str] | None = None) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )


async def described(
    scene: Scene, kind: int, name: str, keys: Sequence[str] | None = None
) -> dict[str, DescribeConfigsResourceResult]:
    """The configs of a resource by name, with synonyms."""
    request = DescribeConfigsRequest(resources=[resource(kind, name, keys)], include_synonyms=True)
    (result,) = (await scene.call(request)).results
    assert result.error_code == 0, result
    return {config.name: config for config in result.configs}


async def value(scene: Scene, kind: int, name: str, key: str) -> str | None:
    return (await described(scene, kind, name, [key]))[key].value
