"""Objects that are not what was copied: cut off, or somebody else's. The broker says so and serves on."""

from __future__ import annotations

import pytest
import trio.testing

from kwire.cluster.replica import EARLIEST
from kwire.protocol.errors import ErrorCode
from tests.broker.tiered.support import TIERED, TieredPlace, fetch, fill, list_offset, records, until

SUFFIXES = [".index", ".timeindex", ".log"]
GARBAGE = {"nothing": b"", "a byte": b"\x00", "text": b"hello, world" * 400, "high bits": b"\xff" * 4800}

NOT_TO_BE_READ = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)
MAYBE = (ErrorCode.NONE, *NOT_TO_BE_READ)


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=list(GARBAGE))
@pytest.mark.parametrize("suffix", SUFFIXES)
async def test_garbage(suffix: str, garbage: bytes, autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 30)
        await until(lambda: scene.log("t").local_start_offset >= 60)
        for key in await place.keys():
            if key.endswith(suffix):
                await place.objects.put(key, [garbage])
        for offset in (0, 7, 20, 44):
            told = await fetch(scene, "t", offset)
            assert told.error_code in (NOT_TO_BE_READ if suffix == ".log" else MAYBE)
        assert (await list_offset(scene, "t", 0)).error_code in MAYBE
        assert (await list_offset(scene, "t", EARLIEST)).offset == 0
        assert records((await fetch(scene, "t", 88)).records)[-1][0] == 89
