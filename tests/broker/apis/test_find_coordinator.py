"""FindCoordinator on a broker in memory."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.scene import HOST, PORT, running

GROUP, TRANSACTION, SHARE, NONSENSE = 0, 1, 2, 3


async def test_a_group_is_coordinated_by_the_leader_of_its_partition(autojump_clock) -> None:
    async with running({"offsets.topic.num.partitions": "3"}) as scene:
        assert "__consumer_offsets" not in scene.broker.store.image.topics
        response = await scene.call(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["one", "two"]), 6)
        assert [
            (found.key, found.error_code, found.node_id, found.host, found.port) for found in response.coordinators
        ] == [("one", 0, 1, HOST, PORT), ("two", 0, 1, HOST, PORT)]
        topic = scene.broker.store.image.topics["__consumer_offsets"]
        assert len(topic.partitions) == 3
        assert scene.log("__consumer_offsets").config.compacted


async def test_a_single_key_in_the_old_form(autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(FindCoordinatorRequest(key="group"), 3)
        assert (response.error_code, response.node_id, response.host, response.port) == (0, 1, HOST, PORT)


async def test_where_the_internal_topic_cannot_be_made_there_is_no_coordinator(autojump_clock) -> None:
    async with running({"offsets.topic.replication.factor": "3"}) as scene:
        response = await scene.call(FindCoordinatorRequest(coordinator_keys=["group"]), 6)
        (found,) = response.coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (found.node_id, found.host, found.port) == (-1, "", -1)


@pytest.mark.parametrize(("key_type", "version"), [(SHARE, 5), (NONSENSE, 6)])
async def test_a_type_of_key_that_the_version_does_not_have(key_type: int, version: int, autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["key"]), version)
        assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
