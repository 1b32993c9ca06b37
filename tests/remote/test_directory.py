"""The store in a folder: the conformance suite, what crashes leave of it, and what its disk may do wrong."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from kwire.ports.clock import SystemClock
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.simulated_disk import Call, Effect, Killed, Order, SimulatedDisk, kill_at, once
from kwire.ports.system import system_ports
from kwire.remote.directory import FORGOTTEN_MS, MARK, UPLOADS, DirectoryObjectStore
from kwire.remote.errors import AccessDenied, ObjectNotFound, RemoteStorageError, RemoteStorageUnavailable
from tests.broker.scene import memory_ports
from tests.remote.conformance import *  # noqa: F403
from tests.remote.conformance import file_of, keys


@pytest.fixture
def store(tmp_path: Path) -> DirectoryObjectStore:
    return DirectoryObjectStore(str(tmp_path / "objects"), system_ports(threads=4))


def leftovers(tmp_path: Path) -> list[str]:
    uploads = tmp_path / "objects" / UPLOADS
    return os.listdir(uploads) if uploads.exists() else []


async def test_a_failed_put_leaves_no_upload(store: DirectoryObjectStore, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="ends before"):
        await store.put("a/b", [file_of(tmp_path / "short", b"x", 0, 2)])
    assert leftovers(tmp_path) == []


async def test_a_cancelled_put_leaves_nothing(store: DirectoryObjectStore, tmp_path: Path) -> None:
    content = file_of(tmp_path / "large", bytes(30 << 20))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.put, "a/b", [content])
        while not leftovers(tmp_path):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert leftovers(tmp_path) == []
    assert await keys(store) == []


async def test_files_that_are_no_objects_are_not_listed(store: DirectoryObjectStore, tmp_path: Path) -> None:
    await store.put("a", [b"x"])
    (tmp_path / "objects" / UPLOADS / "one").write_bytes(b"x")
    (tmp_path / "objects" / "some thing").write_bytes(b"x")
    assert await keys(store) == ["a"]


async def test_a_folder_is_no_object(store: DirectoryObjectStore) -> None:
    await store.put("a/b", [b"x"])
    with pytest.raises(ObjectNotFound):
        await store.get("a", 0, 1)
    with pytest.raises(ObjectNotFound):
        await store.size("a/b/c")
    await store.delete(["a", "a/b/c"])
    for key in ("a", "a/b/c"):
        with pytest.raises(RemoteStorageError) as info:
            await store.put(key, [b"x"])
        assert not info.value.retriable
    assert await keys(store) == ["a/b"]


async def test_a_folder_that_vanished_is_made_again(store: DirectoryObjectStore, tmp_path: Path) -> None:
    await store.put("a/b", [b"x"])
    shutil.rmtree(tmp_path / "objects" / "a")
    await store.put("a/c", [b"y"])
    assert await store.get("a/c", 0, 1) == b"y"


async def test_no_folder_is_left_of_objects_that_were_deleted(store: DirectoryObjectStore, tmp_path: Path) -> None:
    objects = tmp_path / "objects"
    await store.put("t/0/a/log", [b"x"])
    await store.put("t/0/a/index", [b"x"])
    await store.put("t/0/b/log", [b"x"])
    await store.delete(["t/0/a/index"])
    assert await keys(store) == ["t/0/a/log", "t/0/b/log"]
    await store.delete(["t/0/a/log", "t/0/a/index"])
    assert os.listdir(objects / "t" / "0") == ["b"]
    (objects / "t" / "0" / "c").mkdir()  # a deletion that was interrupted
    await store.delete(["t/0/b/log", "t/0/c/log"])
    assert sorted(os.listdir(objects)) == [MARK, UPLOADS]
    await store.put("t/0/a/log", [b"y"])
    assert await store.get("t/0/a/log", 0, 1) == b"y"


@pytest.mark.parametrize("mounted_on", ["", "objects"], ids=["missing", "an empty folder"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_nothing_is_made_where_a_file_system_is_not_mounted(
    tmp_path: Path, mounted_on: str, restarted: bool
) -> None:
    """What is kept of it says that it was a store; nobody is told that an object is not there."""
    objects, away, written = tmp_path / "objects", tmp_path / "away", tmp_path / "written"

    def opened() -> DirectoryObjectStore:
        return DirectoryObjectStore(str(objects), system_ports(threads=1), str(written))

    store = opened()
    await store.put("a/b", [b"x"])
    objects.rename(away)
    if mounted_on:
        (tmp_path / mounted_on).mkdir()
    if restarted:
        store = opened()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.put("a/c", [b"y"]),
        lambda: store.get("a/b", 0, 1),
        lambda: store.size("a/b"),
        lambda: store.delete(["a/b"]),
        lambda: keys(store),
    ]
    for call in calls:
        with pytest.raises(RemoteStorageUnavailable, match="is not the object store that was written to before"):
            await call()
    assert not list(objects.glob("*"))
    if mounted_on:
        objects.rmdir()
    away.rename(objects)
    await store.put("a/c", [b"y"])
    assert await keys(store) == ["a/b", "a/c"]
    written.unlink()
    objects.rename(away)
    await opened().put("a/d", [b"z"])
    assert await keys(store) == ["a/d"]


async def test_a_folder_may_vanish_amid_a_put() -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    await store.put("other", [])

    def another_broker_deletes(call: Call) -> None:
        if call.operation == "rename":
            disk.fault = None
            disk.remove_tree("/data/objects/a")

    disk.fault = another_broker_deletes
    await store.put("a/b/c", [b"content"])
    assert disk.fault is None
    disk.cut_power()
    assert await opened(disk).get("a/b/c", 0, 10) == b"content"


@pytest.mark.parametrize("order", Order)
async def test_what_was_deleted_does_not_come_back(order: Order) -> None:
    for seed in range(20):
        disk = SimulatedDisk(order=order, seed=seed)
        store = opened(disk)
        await store.put("t/0/a/log", [b"x"])
        await store.put("t/0/b/log", [b"x"])
        await store.put("t/0/b/index", [b"x"])
        await store.delete(["t/0/a/log", "t/0/b/index"])
        disk.cut_power()
        assert await keys(opened(disk)) == ["t/0/b/log"]


async def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RemoteStorageError, match="Not a directory") as info:
        await DirectoryObjectStore(str(tmp_path / "file"), system_ports(threads=1)).put("a", [])
    assert not info.value.retriable


def opened(disk: SimulatedDisk, written: str | None = None) -> DirectoryObjectStore:
    ports = memory_ports(MemoryNetwork(), MemoryFileSystem())._replace(files=disk)
    return DirectoryObjectStore("/data/objects", ports, written)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("cut", [False, True], ids=["killed", "power cut"])
async def test_a_put_is_whole_or_absent_wherever_it_ends(order: Order, cut: bool) -> None:
    content = bytes(range(256)) * 4096 * 2
    ended = True
    number = 0
    while ended:
        for seed in range(5):
            disk = SimulatedDisk(order=order, seed=seed)
            store = opened(disk)
            await store.put("topic/0/old", [b"old"])
            disk.calls = 0
            disk.fault = kill_at(number, share=0.5)
            try:
                await store.put("topic/1/new", [content, b"tail"])
                ended = False
            except Killed:
                pass
            if cut:
                disk.cut_power()
            else:
                disk.restart()
            store = opened(disk)
            assert await store.get("topic/0/old", 0, 10) == b"old"
            if not ended or "topic/1/new" in await keys(store):
                assert await store.get("topic/1/new", 0, 1 << 30) == content + b"tail"
            else:
                with pytest.raises(ObjectNotFound):
                    await store.size("topic/1/new")
                await store.put("topic/1/new", [b"again"])
                assert await store.get("topic/1/new", 0, 10) == b"again"
        number += 1
    assert number > 8


@pytest.mark.parametrize("cut", [False, True], ids=["killed", "power cut"])
async def test_a_store_that_was_about_to_be_made_can_be_made(cut: bool) -> None:
    """Wherever the first put ended: what is kept of it is never there before the store is."""
    ended = True
    number = 0
    while ended:
        disk = SimulatedDisk()
        disk.make_dirs("/own")
        disk.fault = kill_at(number, share=0.5)
        try:
            await opened(disk, "/own/written").put("a", [b"x"])
            ended = False
        except Killed:
            pass
        if cut:
            disk.cut_power()
        else:
            disk.restart()
        disk.make_dirs("/own")
        store = opened(disk, "/own/written")
        await store.put("b", [b"y"])
        assert "b" in await keys(store)
        number += 1
    assert number > 8


@pytest.mark.parametrize(
    ("operation", "number", "expected"),
    [
        ("create", errno.EACCES, AccessDenied),
        ("write", errno.ENOSPC, RemoteStorageUnavailable),
        ("write", errno.EROFS, AccessDenied),
        ("sync", errno.EIO, RemoteStorageUnavailable),
        ("rename", errno.ESTALE, RemoteStorageUnavailable),
        ("make_dir", errno.EDQUOT, RemoteStorageUnavailable),
    ],
)
async def test_a_disk_that_fails(operation: str, number: int, expected: type[RemoteStorageError]) -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    await store.put("other/a", [])
    await store.delete(["other/a"])
    disk.fault = once(operation, Effect(number, share=0.5))
    with pytest.raises(expected, match=f"put a/b: {os.strerror(number)}"):
        await store.put("a/b", [b"content"])
    assert await keys(store) == []
    assert disk.list(f"/data/objects/{UPLOADS}") == []
    await store.put("a/b", [b"content"])
    assert await store.get("a/b", 0, 10) == b"content"


async def test_a_read_that_fails_may_be_tried_again() -> None:
    disk = SimulatedDisk()
    store = opened(disk)
    await store.put("a", [b"content"])
    disk.fault = once("open", Effect(errno.EIO))
    with pytest.raises(RemoteStorageUnavailable) as info:
        await store.get("a", 0, 10)
    assert info.value.retriable
    assert await store.get("a", 0, 10) == b"content"


async def test_uploads_that_nobody_finishes_go_after_a_day(tmp_path: Path) -> None:
    uploads = tmp_path / "objects" / UPLOADS
    uploads.mkdir(parents=True)
    clock = SystemClock()
    for name, age_ms in (("old", FORGOTTEN_MS + 60_000), ("young", FORGOTTEN_MS - 60_000)):
        (uploads / name).write_bytes(b"x")
        seconds = (clock.wall_ms() - age_ms) / 1000
        os.utime(uploads / name, (seconds, seconds))
    await DirectoryObjectStore(str(tmp_path / "objects"), system_ports(threads=1)).put("a", [])
    assert leftovers(tmp_path) == ["young"]
