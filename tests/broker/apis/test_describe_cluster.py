"""DescribeCluster: brokers, fenced ones too, kinds of endpoints, authorized operations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kwire.metadata.changes import BrokerRegistered
from kwire.metadata.image import Endpoint
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kwire.security.authorizer import SUPPORTED_OPERATIONS, ResourceType
from tests.broker.scene import NEIGHBOUR, Scene, running

NOT_ASKED = -(2**31)
"""Of authorized operations."""


async def ask(scene: Scene, version: int = 2, **options: Any) -> DescribeClusterResponse:
    return await scene.call(DescribeClusterRequest(**options), version)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_cluster(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.broker.store.commit([BrokerRegistered(NEIGHBOUR)])
        response = await ask(scene, version)
        assert (response.error_code, response.error_message, response.endpoint_type) == (0, None, 1)
        assert (response.cluster_id, response.controller_id) == (scene.broker.store.image.cluster_id, 1)
        assert [(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in response.brokers] == [
            (1, "broker", 9092, None, False),
            (2, "neighbour", 9093, "rack", False),
        ]
        assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("include", [False, True])
async def test_fenced_brokers_are_for_who_asks(include: bool, autojump_clock) -> None:
    async with running() as scene:
        elsewhere = (Endpoint("OTHER", "third", 9094, "PLAINTEXT"),)
        await scene.broker.store.commit(
            [
                BrokerRegistered(replace(NEIGHBOUR, fenced=True)),
                BrokerRegistered(replace(NEIGHBOUR, id=3, endpoints=elsewhere)),
                BrokerRegistered(replace(NEIGHBOUR, id=4, endpoints=elsewhere, fenced=True)),
            ]
        )
        response = await ask(scene, include_fenced_brokers=include)
        told = [(each.broker_id, each.host, each.is_fenced) for each in response.brokers]
        assert told == [(1, "broker", False), *([(2, "neighbour", True)] if include else [])]


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 0"),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type 3"),
        (-1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Unsupported endpoint type -1"),
    ],
)
async def test_kinds_of_endpoints(endpoint_type: int, code: ErrorCode, message: str, autojump_clock) -> None:
    async with running() as scene:
        for version in (1, 2):
            response = await ask(scene, version, endpoint_type=endpoint_type)
            assert (response.error_code, response.error_message) == (code, message)
            assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])


async def test_authorized_operations(autojump_clock) -> None:
    async with running() as scene:
        response = await ask(scene, include_cluster_authorized_operations=True)
        everything = sum(1 << operation for operation in SUPPORTED_OPERATIONS[ResourceType.CLUSTER])
        assert response.cluster_authorized_operations == everything
