"""FindCoordinator where there are no coordinators."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.scene import running

GROUP, TRANSACTION, SHARE, NONSENSE = 0, 1, 2, 3


@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION, SHARE])
async def test_every_key_is_told_that_there_is_none(key_type: int, autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["one", "two"]), 6)
        assert [coordinator.key for coordinator in response.coordinators] == ["one", "two"]
        for coordinator in response.coordinators:
            assert coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert "no group or transaction coordinator" in coordinator.error_message
            assert (coordinator.node_id, coordinator.host, coordinator.port) == (-1, "", -1)


async def test_a_single_key_in_the_old_form(autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(FindCoordinatorRequest(key="group"), 3)
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (response.node_id, response.host, response.port) == (-1, "", -1)
        assert "no group or transaction coordinator" in response.error_message


@pytest.mark.parametrize(("key_type", "version"), [(SHARE, 5), (NONSENSE, 6)])
async def test_a_type_of_key_that_the_version_does_not_have(key_type: int, version: int, autojump_clock) -> None:
    async with running() as scene:
        response = await scene.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["key"]), version)
        assert response.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


async def test_the_log_says_it_once(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    async with running() as scene:
        for _ in range(3):
            await scene.call(FindCoordinatorRequest(coordinator_keys=["group"]), 6)
    warnings = [record for record in caplog.records if "coordinator not available" in record.message]
    assert len(warnings) == 1
