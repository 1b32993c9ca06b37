"""A tiered topic that was compacted once: a segment may have lost its last batches."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.broker.tiered.support import TIERED, TieredPlace, fill, read_all, until
from tests.storage.support import placed


@pytest.mark.parametrize("isolation", [0, 1])
async def test_a_consumer_goes_on_behind_a_gap(isolation: int, autojump_clock: trio.testing.MockClock) -> None:
    """At first to what is here, then to the next copy."""
    async with TieredPlace().broker() as scene:
        await scene.create("t", **TIERED, retention_ms="-1")
        expected = list(enumerate(await fill(scene, "t", 5)))
        log = scene.log("t")
        # As compaction would leave it, offset 40 begins a segment, and the one before has nothing behind offset 14.
        await log.append_as_follower(placed(40, ["x" * 100]))
        assert [segment.base_offset for segment in log.segments] == [0, 40]
        expected.append((40, b"x" * 100))
        expected += enumerate(await fill(scene, "t", 6), 41)
        await until(lambda: log.local_start_offset == 40)
        with trio.fail_after(60):
            assert await read_all(scene, "t", isolation=isolation) == expected
        expected += enumerate(await fill(scene, "t", 20), 59)
        await until(lambda: log.local_start_offset > 60)
        with trio.fail_after(60):
            assert await read_all(scene, "t", isolation=isolation) == expected
