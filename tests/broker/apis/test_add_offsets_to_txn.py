"""AddOffsetsToTxn: the partition that keeps a group's offsets takes part in a transaction."""

from __future__ import annotations

import pytest

from kwire.coordinator.runtime.coordinator import partition_of
from kwire.protocol.errors import ErrorCode
from kwire.security.authorizer import Operation
from tests.broker.apis.transactions import add_offsets, begin, describe
from tests.broker.scene import running


@pytest.mark.parametrize("version", range(5))
async def test_the_groups_partition_is_added(version: int, autojump_clock) -> None:
    async with running() as scene:
        producer = await begin(scene)
        assert await add_offsets(scene, producer, "some group", version=version) == 0
        assert [(topic.topic, topic.partitions) for topic in (await describe(scene)).topics] == [
            ("__consumer_offsets", [partition_of("some group", 50)])
        ]


@pytest.mark.parametrize("version", range(5))
async def test_a_fenced_producer_is_told_as_its_version_understands(version: int, autojump_clock) -> None:
    async with running() as scene:
        first = await begin(scene)
        await begin(scene)
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await add_offsets(scene, first, version=version) == expected


async def test_who_may_add(autojump_clock) -> None:
    async with running() as scene:
        producer = await begin(scene)
        assert await add_offsets(scene, producer, transactional_id="other") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await add_offsets(scene, producer, transactional_id="") == ErrorCode.INVALID_REQUEST
        await scene.allow(Operation.READ)
        assert await add_offsets(scene, producer) == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        await scene.allow(Operation.WRITE)
        assert await add_offsets(scene, producer) == ErrorCode.GROUP_AUTHORIZATION_FAILED
