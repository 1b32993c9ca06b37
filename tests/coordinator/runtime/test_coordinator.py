"""All partitions of a coordinator: their deadlines, and which of them a key belongs to."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.coordinator import Coordinator, partition_of
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome
from kwire.coordinator.runtime.shard import Shard
from kwire.ports.clock import TrioClock
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.numbers import Codec, MemoryLog, Numbers, read


async def test_deadlines_run_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    clock = TrioClock()
    coordinator = Coordinator("numbers", lambda index, log: Shard(log, Numbers(), Codec(), clock))
    coordinator.partitions = 1
    coordinator.lead(0, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.run)
        await trio.testing.wait_all_tasks_blocked()
        shard = coordinator.shard_of("any")

        def later(now: Now) -> Outcome[None]:
            return Outcome(None, [CoordinatorRecord("late", now.ms)])  # type: ignore[arg-type]

        start = shard.now().ms
        for at in (5000, 2000, 9000):
            shard.machine.deadlines.schedule(at, start + at, later)
        await trio.sleep(2.001)
        assert shard.read(read("late")) == start + 2000
        shard.machine.deadlines.schedule("sooner", start + 3000, later)
        await trio.sleep(1)
        assert shard.read(read("late")) == start + 3000
        await trio.sleep(7)
        assert shard.read(read("late")) == start + 9000
        coordinator.close()
        with pytest.raises(KafkaError) as raised:
            coordinator.shard_of("any")
        assert raised.value.code is ErrorCode.NOT_COORDINATOR
        nursery.cancel_scope.cancel()


async def test_others_have_their_turn_between_deadlines_that_come_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """All sessions of a loaded partition end at once, say."""
    now = 0.0
    turns: list[int] = []

    class SlowClock(TrioClock):
        def monotonic(self) -> float:
            return now

    clock = SlowClock()
    shards = [Shard(MemoryLog(), Numbers(), Codec(), clock) for _ in range(2)]
    coordinator = Coordinator("numbers", lambda index, log: shards[index])
    coordinator.partitions = 2
    passes = 0

    def slow(at: Now) -> None:
        nonlocal now
        now += 0.001
        turns.append(passes)

    for index, shard in enumerate(shards):
        coordinator.lead(index, shard.log)
        for number in range(50):
            shard.machine.deadlines.schedule(number, 0, slow)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.run)
        while len(turns) < 100:
            await trio.lowlevel.checkpoint()
            passes += 1
        nursery.cancel_scope.cancel()
    assert len(set(turns)) > 20


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("", 0),
        ("a", 47),
        ("polygenelubricants", 0),  # its hash is the least int, which has no absolute value
        ("gruppe-ü", 22),
        ("𝄞", 44),
        ("my-group", 12),  # its hash is negative
    ],
)
def test_keys_are_spread_as_by_apache_kafka(key: str, partition: int) -> None:
    assert partition_of(key, 50) == partition
