"""What is asked of many groups at once leaves the event loop to others in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kwire.protocol.schema import Message
from tests.broker.apis.groups import find
from tests.broker.scene import running

MANY = 50
NAMES = [f"group-{number}" for number in range(MANY)]
PARTITIONS = {"offsets.topic.num.partitions": str(MANY)}


class Passes(trio.abc.Instrument):
    """Counts those of the event loop. (How often another task runs would depend on which runs first in a pass.)"""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


async def turns_of_another(work: Callable[[], Awaitable[object]]) -> int:
    """How often another task may run meanwhile."""
    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    try:
        await work()
    finally:
        trio.lowlevel.remove_instrument(passes)
    return passes.count


@pytest.mark.parametrize(
    "request_",
    [
        FindCoordinatorRequest(coordinator_keys=NAMES),
        ListGroupsRequest(),
        DescribeGroupsRequest(groups=NAMES),
        DeleteGroupsRequest(groups_names=NAMES),
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in NAMES]),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_others_have_their_turn(
    request_: Message, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(PARTITIONS) as scene:
        await find(scene)

        async def ask() -> None:
            await scene.call(request_)

        at_once = await turns_of_another(ask)
        monkeypatch.setattr("kwire.ports.turns.TURN_SECONDS", 0.0)
        assert await turns_of_another(ask) >= at_once + MANY
