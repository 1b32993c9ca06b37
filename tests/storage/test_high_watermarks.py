"""The checkpoint of the high watermarks is kept up by what moved: it says what a look at all of them would."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.config.topic import LogConfig
from kwire.ports import turns
from kwire.ports.clock import SystemClock
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.turns import Turn
from kwire.storage import checkpoints, high_watermarks, layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.high_watermarks import BLOCK_PARTITIONS, HighWatermarks
from kwire.storage.manager import LogManager

from .support import CLUSTER, ROOT, TOPIC_ID, ManualClock, append, manager, run

PARTITIONS = st.tuples(st.just("a"), st.integers(0, 9))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), PARTITIONS, st.integers(0, 3)),
        st.tuples(st.just("put"), PARTITIONS, st.integers(0, 3)),
        st.tuples(st.just("remove"), PARTITIONS, st.just(0)),
        st.tuples(st.just("write"), st.just(("a", 0)), st.just(0)),
    ),
    min_size=20,
    max_size=100,
)
LEFT = st.none() | st.dictionaries(PARTITIONS, st.integers(0, 3), max_size=8)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(high_watermarks, "BLOCK_PARTITIONS", 3)


def encoded(watermarks: HighWatermarks) -> bytes:
    data: bytes = run(watermarks.encoded, Turn(SystemClock()))
    return data


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LEFT, CHANGES)
def test_it_says_what_was_put_and_not_removed(
    small_blocks: None, left: dict[TopicPartition, int] | None, changes: list[tuple[str, TopicPartition, int]]
) -> None:
    watermarks, kept = HighWatermarks(), dict[TopicPartition, int]()
    said = left
    if left is not None:
        watermarks.begin(left)
    for what, partition, offset in [*changes, ("write", ("a", 0), 0)]:
        if what == "put":
            watermarks.put(partition, offset)
            kept[partition] = offset
        elif what == "remove":
            watermarks.remove(partition)
            kept.pop(partition, None)
        else:
            if said != kept:
                assert watermarks.due
            if watermarks.due:
                said = checkpoints.decode_offsets(encoded(watermarks))
            assert said == kept
            watermarks.settle()
            assert not watermarks.due
        for number in range(10):
            known = ("a", number) in kept or ("a", number) in (said or {})
            assert known <= watermarks.mentions({("a", number)})
            assert not watermarks.mentions({("c", number)})


def test_what_the_last_run_left_is_not_written_again() -> None:
    watermarks = HighWatermarks()
    watermarks.begin({("t", 0): 4, ("t", 1): 5})
    watermarks.put(("t", 1), 5)
    assert watermarks.due  # of t-0 nothing is here
    watermarks.put(("t", 0), 4)
    assert not watermarks.due


def test_the_lines_of_those_that_stay_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watermarks = HighWatermarks()
    for number in range(10 * BLOCK_PARTITIONS):
        watermarks.put(("t", number), 1)
    encoded(watermarks)
    made: list[int] = []
    make: Callable = checkpoints.encode_offset_lines
    monkeypatch.setattr(
        high_watermarks.checkpoints,
        "encode_offset_lines",
        lambda offsets: made.append(len(offsets)) or make(offsets),  # type: ignore[func-returns-value]
    )
    watermarks.put(("t", 3), 2)
    watermarks.put(("t", 4), 2)
    watermarks.put(("t", 500), 1)
    assert checkpoints.decode_offsets(encoded(watermarks)) == {
        ("t", number): 2 if number in (3, 4) else 1 for number in range(10 * BLOCK_PARTITIONS)
    }
    assert made == [BLOCK_PARTITIONS]


async def of_logs(files: MemoryFileSystem, count: int) -> LogManager:
    managed = manager(files, ManualClock())
    await managed.lock()
    await managed.load(CLUSTER, 1, lambda topic: LogConfig())
    for number in range(count):
        log = await managed.get_or_create("t", number, TOPIC_ID, LogConfig())
        await append(log, "a")
        log.set_high_watermark(1)
    return managed


def said(files: MemoryFileSystem) -> dict[TopicPartition, int]:
    return dict(checkpoints.decode_offsets(files.read(f"{ROOT}/{layout.HIGH_WATERMARKS}")))


async def test_only_those_that_moved_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFileSystem()
    managed = await of_logs(files, 10)
    await managed.upkeep.write_high_watermarks()
    assert said(files) == {("t", number): 1 for number in range(10)}
    looked: list[TopicPartition] = []
    put = HighWatermarks.put
    monkeypatch.setattr(
        HighWatermarks, "put", lambda self, partition, offset: looked.append(partition) or put(self, partition, offset)
    )
    for _ in range(3):
        await append(managed.logs[("t", 4)], "b")
        managed.logs[("t", 4)].advance_high_watermark(5)
    await managed.upkeep.write_high_watermarks()
    assert looked == [("t", 4)]
    assert said(files) == {**{("t", number): 1 for number in range(10)}, ("t", 4): 4}
    managed.logs[("t", 4)].set_high_watermark(2)
    await managed.upkeep.write_high_watermarks()
    assert said(files)[("t", 4)] == 2


@pytest.mark.parametrize("passes", range(1, 20))
async def test_a_look_that_is_cancelled_is_made_up_for(
    monkeypatch: pytest.MonkeyPatch, small_blocks: None, passes: int
) -> None:
    """In the looks at 10 logs, the encoding of 4 blocks, and behind them."""
    files = MemoryFileSystem()
    managed = await of_logs(files, 10)
    with monkeypatch.context() as patched:
        patched.setattr(turns, "TURN_SECONDS", -1.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(managed.upkeep.write_high_watermarks)
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    await managed.upkeep.write_high_watermarks()
    assert said(files) == {("t", number): 1 for number in range(10)}


async def test_a_partition_of_the_same_name_is_not_taken_for_the_one_before() -> None:
    files = MemoryFileSystem()
    managed = await of_logs(files, 2)
    await managed.upkeep.write_high_watermarks()
    await managed.delete([("t", 1)])
    assert said(files) == {("t", 0): 1}
    await managed.get_or_create("t", 1, bytes(range(1, 17)), LogConfig())
    await managed.upkeep.write_high_watermarks()
    assert said(files) == {("t", 0): 1, ("t", 1): 0}


async def test_a_deletion_amid_which_a_look_was_cancelled_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, small_blocks: None
) -> None:
    """The look has taken the partition out, and the file not yet: `forget` must not go by the look."""
    files = MemoryFileSystem()
    managed = await of_logs(files, 10)
    await managed.upkeep.write_high_watermarks()
    (log_dir,) = managed.dirs
    del managed.logs["t", 3]
    log_dir.high_watermarks.note(("t", 3))
    with monkeypatch.context() as patched:
        patched.setattr(turns, "TURN_SECONDS", -1.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(managed.upkeep.write_high_watermarks)
            while ("t", 3) in log_dir.high_watermarks._block_of:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert ("t", 3) in said(files)
    await managed.upkeep.forget(log_dir, {("t", 3)})
    assert ("t", 3) not in said(files)
