"""Configs of groups (KIP-848) through the APIs, whether the group exists or not: set, shown, listed, kept, deleted."""

from __future__ import annotations

from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kwire.security.authorizer import Operation
from tests.broker.apis.configs import GROUP, UNAUTHORIZED, described, value
from tests.broker.apis.test_alter_configs import APPEND, DELETE, DONE, SET, change, replace
from tests.broker.scene import Scene, running

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


async def listed(scene: Scene) -> list[str]:
    response = await scene.call(ListConfigResourcesRequest(resource_types=[GROUP]))
    return [each.resource_name for each in response.config_resources]


async def test_from_set_to_deleted(autojump_clock) -> None:
    async with running() as scene:
        assert await value(scene, GROUP, "g", SESSION) == "45000"
        assert await change(scene, (GROUP, "g", [(SET, SESSION, " 50000 ")]), validate_only=True) == [DONE]
        assert await listed(scene) == []
        assert await change(scene, (GROUP, "g", [(SET, SESSION, " 50000 ")])) == [DONE]
        row = (await described(scene, GROUP, "g"))[SESSION]
        assert (row.value, [synonym.source for synonym in row.synonyms]) == ("50000", [8, 5])
        assert await value(scene, GROUP, "another", SESSION) == "45000"
        assert await listed(scene) == ["g"]
        assert await replace(scene, (GROUP, "g", [(HEARTBEAT, "6000")])) == [DONE]
        assert await value(scene, GROUP, "g", SESSION) == "45000"
        assert await change(scene, (GROUP, "g", [(DELETE, HEARTBEAT, None), (DELETE, "nonsense", None)])) == [DONE]
        assert await listed(scene) == []


async def test_what_is_refused(autojump_clock) -> None:
    async with running() as scene:
        cases = [
            ((SET, "nonsense", "1"), ErrorCode.INVALID_CONFIG, "Unknown group config name: nonsense"),
            (
                (APPEND, SESSION, "1"),
                ErrorCode.INVALID_CONFIG,
                f"Can't APPEND to key {SESSION} because its type is not LIST.",
            ),
            ((SET, SESSION, None), ErrorCode.INVALID_REQUEST, f"Null value not supported for : {SESSION}"),
            (
                (SET, SESSION, "1"),
                ErrorCode.INVALID_CONFIG,
                f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
            ),
        ]
        for changes, code, message in cases:
            assert await change(scene, (GROUP, "g", [changes])) == [(code, message)]
        assert await listed(scene) == []


async def test_they_stay_over_a_restart(autojump_clock) -> None:
    files = MemoryFileSystem()
    async with running(files=files) as scene:
        assert await change(scene, (GROUP, "g", [(SET, SESSION, "50000")])) == [DONE]
    async with running(files=files) as scene:
        assert await value(scene, GROUP, "g", SESSION) == "50000"


async def test_what_later_bounds_exclude_stays(autojump_clock) -> None:
    """It is shown as it was set; the coordinator goes by the bounds."""
    files = MemoryFileSystem()
    async with running(files=files) as scene:
        assert await change(scene, (GROUP, "g", [(SET, SESSION, "60000")])) == [DONE]
    async with running({"group.consumer.max.session.timeout.ms": "50000"}, files=files) as scene:
        assert await value(scene, GROUP, "g", SESSION) == "60000"


async def test_who_may_not(autojump_clock) -> None:
    async with running() as scene:
        await scene.allow(Operation.DESCRIBE_CONFIGS)
        assert await change(scene, (GROUP, "g", [(SET, SESSION, "50000")])) == [UNAUTHORIZED[GROUP]]
        assert await replace(scene, (GROUP, "g", [(SESSION, "50000")])) == [UNAUTHORIZED[GROUP]]
        assert await value(scene, GROUP, "g", SESSION) == "45000"
