"""AlterPartitionReassignments where there is one broker."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kwire.security.authorizer import Operation
from tests.broker.scene import running

ASKED = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="t",
            partitions=[
                ReassignablePartition(partition_index=0, replicas=[1]),
                ReassignablePartition(partition_index=0, replicas=None),
                ReassignablePartition(partition_index=1, replicas=[2]),
            ],
        ),
        ReassignableTopic(name="absent", partitions=[ReassignablePartition(partition_index=0, replicas=[1])]),
    ]
)


@pytest.mark.parametrize("version", [0, 1])
async def test_each_is_told(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        response = await scene.call(ASKED, version)
        assert (response.error_code, response.error_message) == (0, None)
        assert [
            (topic.name, each.partition_index, each.error_code)
            for topic in response.responses
            for each in topic.partitions
        ] == [
            ("t", 0, ErrorCode.NONE),
            ("t", 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
            ("t", 1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ("absent", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]


async def test_who_may_not(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        await scene.allow(Operation.DESCRIBE)
        response = await scene.call(ASKED)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.error_code == refused
        assert {each.error_code for topic in response.responses for each in topic.partitions} == {refused}
