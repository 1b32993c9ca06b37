"""The store on a journal: the conformance suite, restarts, crashes at any byte, full disks, damage, compaction."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TypeVar

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.cluster.stores import embedded
from kwire.cluster.stores.embedded import EmbeddedStore, StoreError
from kwire.cluster.stores.journal import CLEAN, JOURNAL, commits_line, image_line
from kwire.metadata.changes import ConfigsChanged, LeaderEpochsBumped, ProducerIdsReserved, TopicDeleted
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.ports.executor import InlineExecutor, ThreadExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.randomness import SeededRandomness
from kwire.ports.real_files import PosixFileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.cluster.stores.conformance import *  # noqa: F403
from tests.cluster.stores.conformance import Stores, topic

T = TypeVar("T")

PATH = f"data/{JOURNAL}"


def make_files() -> MemoryFileSystem:
    files = MemoryFileSystem()
    files.make_dirs("data")
    return files


async def open_store(files: MemoryFileSystem, cluster_id: str | None = None) -> EmbeddedStore:
    return await EmbeddedStore.open(files, InlineExecutor(), SeededRandomness(1), "data", cluster_id=cluster_id)


@pytest.fixture
def stores() -> Stores:
    files = make_files()
    opened: list[EmbeddedStore] = []

    async def open_once():
        if not opened:
            opened.append(await open_store(files))
        return opened[0]

    return open_once


async def test_everything_is_there_after_a_restart() -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a", partitions=2), ConfigsChanged("broker", "", {"ü": "\n\u2028"})])
    await store.commit([ProducerIdsReserved(1000)])
    await store.close()
    again = await open_store(files)
    assert again.image == store.image
    assert again.image is not store.image
    await again.commit([topic("b", 2)])
    await again.close()
    assert (await open_store(files)).image == again.image


async def test_the_cluster_id_is_made_once_or_given() -> None:
    files = make_files()
    store = await open_store(files, cluster_id="given-by-meta-properts")
    assert store.image.cluster_id == "given-by-meta-properts"
    await store.close()
    assert (await open_store(files)).image.cluster_id == "given-by-meta-properts"
    assert len((await open_store(make_files())).image.cluster_id) == 22


async def test_on_a_real_disk(tmp_path) -> None:
    async def open_real() -> EmbeddedStore:
        return await EmbeddedStore.open(PosixFileSystem(), ThreadExecutor(2), SeededRandomness(1), str(tmp_path))

    store = await open_real()
    async with trio.open_nursery() as nursery:
        for number in range(1, 20):
            nursery.start_soon(store.commit, [topic(f"t{number}", number)])
    await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [CLEAN, JOURNAL]
    again = await open_real()
    assert again.image == store.image
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL]
    await again.close()


async def test_leader_epochs_grow_after_an_unclean_stop_only() -> None:
    files = make_files()
    store = await open_store(files)
    led, leaderless = PartitionImage((1,), (1,), 1, 5, 7), PartitionImage((1,), (1,), -1, 5, 7)
    await store.commit([topic("a")])
    await store.commit([TopicDeleted("a"), topic_of("b", led, leaderless)])
    await store.close()
    clean = await open_store(files)
    assert clean.image == store.image
    unclean = await open_store(files)  # the one before was never closed
    assert unclean.image.version == clean.image.version + 1
    assert unclean.image.partition("b", 0) == PartitionImage((1,), (1,), 1, 6, 8)
    assert unclean.image.partition("b", 1) == leaderless
    once_more = await open_store(files)
    assert once_more.image.partition("b", 0) == PartitionImage((1,), (1,), 1, 7, 9)
    await once_more.close()
    assert (await open_store(files)).image == once_more.image


def topic_of(name: str, *partitions: PartitionImage):
    from kwire.metadata.changes import TopicCreated

    return TopicCreated(TopicImage(name, name.encode().ljust(16), partitions))


async def journal_of(commits: int) -> tuple[bytes, list[MetadataImage], list[int]]:
    """A journal's bytes after so many commits, the image after each, and the size after each."""
    files = make_files()
    store = await open_store(files)
    images, sizes = [store.image], [files.file_size(PATH)]
    for number in range(1, commits + 1):
        await store.commit([topic(f"t{number}", number), ProducerIdsReserved(number * 1000)])
        images.append(store.image)
        sizes.append(files.file_size(PATH))
    return files.read(PATH), images, sizes


def without_epochs(image: MetadataImage) -> tuple[object, ...]:
    """What a crash must leave as it was; leader epochs and the version grow by the bump."""
    return (image.cluster_id, list(image.topics), image.configs, image.next_producer_id)


async def test_a_crash_at_any_byte_leaves_a_prefix_of_the_commits() -> None:
    data, images, sizes = await journal_of(4)
    for cut in range(sizes[0], len(data) + 1):
        files = make_files()
        files.write_atomically(PATH, data[:cut])
        store = await open_store(files)
        whole = sum(size <= cut for size in sizes) - 1
        assert without_epochs(store.image) == without_epochs(images[whole])
        await store.commit([topic("after", 1000)])
        await store.close()
        assert (await open_store(files)).image == store.image


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_torn_write_of_garbage_is_cut_off(data: st.DataObject) -> None:
    async def check() -> None:
        journal, images, sizes = await journal_of(2)
        tail = data.draw(st.binary(min_size=1, max_size=200))
        files = make_files()
        files.write_atomically(PATH, journal[: sizes[1]] + tail)
        store = await open_store(files)
        assert without_epochs(store.image) == without_epochs(images[1])

    trio.run(check)


async def test_a_cut_tail_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    data, _, sizes = await journal_of(1)
    files = make_files()
    files.write_atomically(PATH, data[:-1])
    with caplog.at_level(logging.WARNING):
        await open_store(files)
    assert f"{PATH}: cut off {sizes[1] - sizes[0] - 1} bytes of an interrupted write at byte {sizes[0]}" in caplog.text


async def test_damage_before_the_end_is_an_error() -> None:
    data, _, sizes = await journal_of(3)
    for position in (0, 5, sizes[0] - 2, sizes[0], sizes[0] + 20, sizes[1] + 9):
        files = make_files()
        files.write_atomically(PATH, data[:position] + b"\xff" + data[position + 1 :])
        begin = max([0, *(size for size in sizes if size <= position)])
        with pytest.raises(StoreError, match=f"{PATH} is damaged at byte {begin}: "):
            await open_store(files)
        assert files.file_size(PATH) == len(data)


async def test_a_missing_line_is_an_error() -> None:
    data, _, sizes = await journal_of(3)
    files = make_files()
    files.write_atomically(PATH, data[: sizes[0]] + data[sizes[1] :])
    with pytest.raises(StoreError, match="version 2 follows version 0"):
        await open_store(files)


async def test_an_empty_journal_is_an_error() -> None:
    files = make_files()
    files.open(PATH, create=True)
    with pytest.raises(StoreError, match="is empty"):
        await open_store(files)


async def test_damage_at_the_end_of_a_journal_closed_in_order_is_an_error() -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    await store.close()
    data = files.read(PATH)
    files.write_atomically(PATH, data[:-5] + b"x" + data[-4:])
    with pytest.raises(StoreError, match="is damaged"):
        await open_store(files)


async def test_a_clean_mark_of_another_size_does_not_count() -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    await store.close()
    files.write_atomically(f"data/{CLEAN}", b"1\n")
    assert (await open_store(files)).image.version == store.image.version + 1
    assert not files.exists(f"data/{CLEAN}")


@pytest.mark.parametrize("left", [1.0, 0.5, 0.0])
async def test_a_journal_that_lost_its_end_since_it_was_closed_in_order_is_an_error(left: float) -> None:
    """Whole lines, part of a line, or all of it: what was acknowledged is gone."""
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    size = len(files.read(PATH))
    await store.commit([ProducerIdsReserved(1000)])
    await store.close()
    data = files.read(PATH)[: int(size * left)]
    files.write_atomically(PATH, data)
    with pytest.raises(StoreError, match=f"has {len(data)} bytes, and had .* put a backup in its place, and remove"):
        await open_store(files)
    assert files.read(PATH) == data
    files.remove(f"data/{CLEAN}")
    if left == 1.0:
        assert list((await open_store(files)).image.topics) == ["a"]


async def test_a_newer_versions_change_is_an_error_that_says_so() -> None:
    data, _, _ = await journal_of(0)
    line = commits_line(1, [[LeaderEpochsBumped()]]).partition(b" ")[2].replace(b"LeaderEpochsBumped", b"Later")
    from kwire.protocol.records.crc import crc32c

    files = make_files()
    files.write_atomically(PATH, data + b"%08x %s" % (crc32c(line.rstrip(b"\n")), line))
    with pytest.raises(StoreError, match="unknown change 'Later'"):
        await open_store(files)


class Faults:
    """Fails chosen operations on the journal with ENOSPC or EIO; a number lets so many bytes of a write through."""

    def __init__(self, files: MemoryFileSystem) -> None:
        self.failing: dict[str, int | None] = {}
        files.fault = self

    def __call__(self, operation: str, path: str, size: int) -> int | None:
        if operation not in self.failing:
            return None
        passes = self.failing[operation]
        if passes is None or path != PATH:
            raise OSError(errno.EIO, "Input/output error", path)
        return min(passes, size)


async def refused(store: EmbeddedStore, message: str) -> None:
    before = store.image
    with pytest.raises(KafkaError, match=message) as error:
        await store.commit([topic("refused", 77)])
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert store.image is before


@pytest.mark.parametrize("failing", [{"write": 0}, {"write": 17}, {"write": None}])
async def test_a_full_disk_changes_nothing_and_passes(failing: dict[str, int | None]) -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    size = files.file_size(PATH)
    faults = Faults(files)
    faults.failing = failing
    await refused(store, f"cannot write the metadata to {PATH}")
    assert files.file_size(PATH) == size
    faults.failing = {}
    await store.commit([topic("b", 2)])
    await store.close()
    assert (await open_store(files)).image == store.image


async def test_a_journal_that_was_removed_takes_no_commit() -> None:
    """The open file would: what is written there is gone with the process."""
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    files.remove(PATH)
    await refused(store, "No such file|the journal was removed")


async def test_a_write_that_cannot_be_taken_back_ends_all_writing() -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    faults = Faults(files)
    faults.failing = {"write": 30, "truncate": None}
    await refused(store, "cannot write")
    faults.failing = {}
    await refused(store, "cannot write")
    await store.close()
    assert not files.exists(f"data/{CLEAN}")
    again = await open_store(files)
    assert list(again.image.topics) == ["a"]


async def test_a_stop_on_a_full_disk_loses_its_mark_alone(caplog: pytest.LogCaptureFixture) -> None:
    files = make_files()
    store = await open_store(files)
    await store.commit([topic("a")])
    faults = Faults(files)
    faults.failing = {"write": None}
    await store.close()
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [("ERROR", False)]
    assert not files.exists(f"data/{CLEAN}")
    faults.failing = {}
    again = await open_store(files)
    assert list(again.image.topics) == ["a"]
    await again.close()
    assert files.exists(f"data/{CLEAN}")


async def test_a_failed_fsync_fails_the_commit() -> None:
    files = make_files()
    store = await open_store(files)
    faults = Faults(files)
    faults.failing = {"sync": None}
    await refused(store, "cannot write")
    faults.failing = {}
    await refused(store, "cannot write")  # the file could not be brought back to a known state
    assert not (await open_store(files)).image.topics


async def test_a_fault_while_writing_fails_all_commits_of_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store(make_files())
    before = store.image

    def fault(*arguments: object) -> bytes:
        raise ValueError("a fault")

    async def attempt(number: int) -> None:
        with pytest.raises(KafkaError, match=r"cannot write the metadata to .*: a fault"):
            await store.commit([topic(f"t{number}", number)])

    with monkeypatch.context() as patch:
        patch.setattr(embedded, "commits_line", fault)
        async with trio.open_nursery() as nursery:
            for number in range(1, 4):
                nursery.start_soon(attempt, number)
    assert store.image is before
    assert (await store.commit([topic("a")])).version == before.version + 1


async def test_what_a_commit_returned_for_survives_a_power_cut() -> None:
    files = make_files()
    store = await open_store(files)
    for number in range(1, 4):
        await store.commit([topic(f"t{number}", number)])
    files.lose_power()
    assert without_epochs((await open_store(files)).image) == without_epochs(store.image)


async def test_a_store_that_cannot_be_opened_says_why() -> None:
    files = MemoryFileSystem()
    with pytest.raises(StoreError, match="cannot open the metadata in data: No such file or directory"):
        await open_store(files)


class CountingExecutor:
    """Runs what it is given when told to, and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.gate = trio.Event()
        self.gate.set()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        self.calls += 1
        await self.gate.wait()
        return function(*arguments)


async def test_commits_that_come_during_a_write_go_to_disk_together() -> None:
    executor = CountingExecutor()
    store = await EmbeddedStore.open(make_files(), executor, SeededRandomness(1), "data")
    executor.calls = 0
    executor.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for number in range(1, 101):
            nursery.start_soon(store.commit, [topic(f"t{number}", number)])
        await trio.testing.wait_all_tasks_blocked()
        executor.gate.set()
    assert executor.calls <= 2
    assert len(store.image.topics) == 100
    assert store.image.version == 100


async def test_a_grown_journal_is_replaced_by_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "COMPACT_BYTES", 4000)
    files = make_files()
    store = await open_store(files)
    largest = 0
    for number in range(1, 200):
        await store.commit([ConfigsChanged("broker", "", {"k": str(number)})])
        largest = max(largest, files.file_size(PATH))
    assert largest < 4200
    assert files.read(PATH).startswith(image_line(MetadataImage())[8:18], 8)
    await store.close()
    again = await open_store(files)
    assert again.image == store.image
    assert again.image.version == 199


@pytest.mark.parametrize("rename_happened", [False, True])
async def test_a_failed_replacement_loses_nothing(monkeypatch: pytest.MonkeyPatch, rename_happened: bool) -> None:
    monkeypatch.setattr(embedded, "COMPACT_BYTES", 1000)
    files = make_files()
    store = await open_store(files)
    write = files.write_atomically

    def fail(path: str, data: bytes) -> None:
        if rename_happened:
            write(path, data)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "write_atomically", fail)
    committed = 0
    for number in range(1, 40):
        try:
            await store.commit([ProducerIdsReserved(number)])
        except KafkaError:
            break
        committed = number
    monkeypatch.setattr(files, "write_atomically", write)
    assert committed == (39 if not rename_happened else committed)
    if rename_happened:
        assert committed < 39
        await refused(store, "cannot write")
    again = await open_store(files)
    assert again.image.next_producer_id == committed
