"""Loading in pieces: as large as configured, a batch as a whole, one partition at a time, no further than it counts."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.coordinator import Coordinator
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Outcome
from kwire.coordinator.runtime.shard import Shard
from kwire.ports.clock import TrioClock
from kwire.protocol.records.header import iter_batches
from tests.coordinator.runtime.numbers import Codec, MemoryLog, Numbers

BATCHES = 6


class PieceLog(MemoryLog):
    """Reads no more than it is asked for, unless one batch is more; each read waits for a while."""

    reading = 0
    most_reading = 0

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(data)
        self.reads: list[int] = []

    async def read(self, offset: int, max_bytes: int) -> bytes:
        PieceLog.reading += 1
        PieceLog.most_reading = max(PieceLog.most_reading, PieceLog.reading)
        await trio.sleep(1)
        PieceLog.reading -= 1
        piece = b""
        for header, batch in iter_batches(self.data):
            if header.next_offset > offset and (not piece or len(piece) + len(batch) <= max_bytes):
                piece += bytes(batch)
        self.reads.append(len(piece))
        return piece


async def written() -> PieceLog:
    """A log with BATCHES batches of the same size."""
    log = PieceLog()
    shard = Shard(log, Numbers(), Codec(), TrioClock())
    await shard.load()
    for number in range(BATCHES):
        await shard.write(lambda _machine, _now, key=f"n{number}": Outcome(None, [CoordinatorRecord(key, 1)]))  # type: ignore[misc, arg-type]
    return PieceLog(log.data)


@pytest.mark.parametrize(("batches", "reads"), [(0, 6), (1, 6), (2, 3), (4, 2), (6, 1)])
async def test_as_much_at_once_as_configured(batches: int, reads: int, autojump_clock) -> None:
    """At least one batch, however large."""
    log = await written()
    size = len(log.data) // BATCHES
    shard = Shard(log, Numbers(), Codec(), TrioClock(), load_bytes=max(batches * size, 1))
    await shard.load()
    assert len(log.reads) == reads
    assert max(log.reads) <= max(batches, 1) * size
    assert dict(shard.machine.numbers.items()) == {f"n{number}": 1 for number in range(BATCHES)}


async def test_one_partition_after_the_other(autojump_clock) -> None:
    PieceLog.most_reading = 0
    logs = [await written() for _ in range(5)]
    clock = TrioClock()
    coordinator = Coordinator("numbers", lambda index, log: Shard(log, Numbers(), Codec(), clock))
    for index, log in enumerate(logs):
        coordinator.lead(index, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.run)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    assert all(shard.active for shard in coordinator.shards.values())
    assert PieceLog.most_reading == 1


async def test_what_is_closed_is_not_loaded_to_the_end(autojump_clock) -> None:
    log = await written()
    shard = Shard(log, Numbers(), Codec(), TrioClock(), load_bytes=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.load)
        await trio.sleep(1.5)
        shard.close()
    assert len(log.reads) == 2
    assert not shard.active
    assert shard.machine.events == []
