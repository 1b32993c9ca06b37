"""What every object store must do. A test module gives the fixture `store`, an empty one, and imports these tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.remote.errors import ObjectNotFound
from kwire.remote.object_store import ObjectStore

KEY = "topic-_A.1/0/00000000000000000042-Zm9v_-.log"


def file_of(path: Path, content: bytes, position: int = 0, size: int | None = None) -> FileSlice:
    path.write_bytes(content)
    return FileSlice(PosixFileSystem().open(str(path)), position, len(content) - position if size is None else size)


async def keys(store: ObjectStore, prefix: str = "") -> list[str]:
    return sorted([found.key async for found in store.list(prefix)])


async def test_what_was_put_is_read(store: ObjectStore) -> None:
    await store.put(KEY, [b"0123", b"", b"456789"])
    assert await store.size(KEY) == 10
    assert await store.get(KEY, 0, 10) == b"0123456789"
    assert await store.get(KEY, 3, 5) == b"34"
    assert await store.get(KEY, 9, 10) == b"9"


async def test_a_read_ends_with_the_object(store: ObjectStore) -> None:
    await store.put(KEY, [b"0123456789"])
    assert await store.get(KEY, 8, 20) == b"89"
    assert await store.get(KEY, 10, 20) == b""
    assert await store.get(KEY, 11, 20) == b""
    assert await store.get(KEY, 4, 4) == b""
    assert await store.get(KEY, 10, 10) == b""


async def test_a_read_gives_bytes_that_can_be_kept(store: ObjectStore) -> None:
    await store.put(KEY, [b"0123456789"])
    assert type(await store.get(KEY, 0, 4)) is bytes


@pytest.mark.parametrize("parts", [[], [b""]], ids=["no part", "an empty part"])
async def test_an_object_may_be_empty(store: ObjectStore, parts: list[bytes]) -> None:
    await store.put(KEY, parts)
    assert await store.size(KEY) == 0
    assert await store.get(KEY, 0, 10) == b""
    assert await keys(store) == [KEY]


async def test_ranges_of_files_are_put(store: ObjectStore, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    whole = file_of(tmp_path / "whole", content)
    part = file_of(tmp_path / "part", content, 1000, 5000)
    await store.put(KEY, [b"head", whole, b"amid", part, file_of(tmp_path / "none", b""), b"tail"])
    expected = b"head" + content + b"amid" + content[1000:6000] + b"tail"
    assert await store.size(KEY) == len(expected)
    assert await store.get(KEY, 0, len(expected)) == expected


async def test_an_object_can_be_put_again(store: ObjectStore) -> None:
    await store.put(KEY, [b"one"])
    await store.put(KEY, [b"one"])
    assert await store.get(KEY, 0, 10) == b"one"
    await store.put(KEY, [b"other one"])
    assert await store.get(KEY, 0, 10) == b"other one"
    assert await keys(store) == [KEY]


async def test_a_file_that_ends_too_soon_leaves_nothing(store: ObjectStore, tmp_path: Path) -> None:
    short = file_of(tmp_path / "short", b"x" * 1000, 0, 1001)
    with pytest.raises(OSError, match="ends before byte 1001"):
        await store.put(KEY, [b"head", short])
    assert await keys(store) == []
    await store.put(KEY, [b"old"])
    with pytest.raises(OSError, match="ends before byte 1001"):
        await store.put(KEY, [short])
    assert await store.get(KEY, 0, 10) == b"old"


async def test_what_is_not_there(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFound, match=KEY) as info:
        await store.get(KEY, 0, 10)
    assert not info.value.retriable
    with pytest.raises(ObjectNotFound, match=KEY):
        await store.size(KEY)
    with pytest.raises(ObjectNotFound):
        await store.get(KEY, 5, 5)
    await store.delete([KEY])


async def test_deleting(store: ObjectStore) -> None:
    for number in range(6):
        await store.put(f"a/{number}", [b"%d" % number])
    await store.delete(["a/1", "a/3", "a/9", "b/c/d", "a/1"])
    assert await keys(store) == ["a/0", "a/2", "a/4", "a/5"]
    await store.delete(["a/1", "a/3"])
    await store.delete([])
    with pytest.raises(ObjectNotFound):
        await store.get("a/1", 0, 1)
    assert await store.get("a/2", 0, 1) == b"2"


async def test_listing(store: ObjectStore) -> None:
    for key, size in (("a/b/1", 3), ("a/b/2", 0), ("a/bc/1", 5), ("b", 7)):
        await store.put(key, [bytes(size)])
    assert await keys(store) == ["a/b/1", "a/b/2", "a/bc/1", "b"]
    assert await keys(store, "a/") == ["a/b/1", "a/b/2", "a/bc/1"]
    assert await keys(store, "a/b/") == ["a/b/1", "a/b/2"]
    assert await keys(store, "c/") == []
    assert await keys(store, "b/") == []
    sizes = {found.key: found.size async for found in store.list("a/")}
    assert sizes == {"a/b/1": 3, "a/b/2": 0, "a/bc/1": 5}


async def test_a_listing_knows_when_objects_came(store: ObjectStore) -> None:
    await store.put("a", [b""])
    await store.put("b", [b""])
    times = {found.key: found.modified_ms async for found in store.list("")}
    assert 1_600_000_000_000 < times["a"] <= times["b"]


async def test_a_listing_can_be_given_up(store: ObjectStore) -> None:
    for number in range(5):
        await store.put(f"a/{number}", [b""])
    listing = store.list("")
    async for found in listing:
        assert found.size == 0
        break
    await listing.aclose()  # type: ignore[attr-defined]
    assert len(await keys(store)) == 5


async def test_many_at_once(store: ObjectStore) -> None:
    async def one(number: int) -> None:
        content = b"%d" % number * 1000
        await store.put(f"many/{number}", [content])
        assert await store.get(f"many/{number}", 0, len(content)) == content
        if number % 2:
            await store.delete([f"many/{number}"])

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(one, number)
    assert len(await keys(store)) == 10


NO_KEYS = ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a b", "a%20b", "ü", "a\n", "a~b", "x" * 201]


@pytest.mark.parametrize("key", [*NO_KEYS, "x/" * 400 + "x"])
async def test_what_is_no_key(store: ObjectStore, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        await store.put(key, [b""])
    with pytest.raises(ValueError, match="no key"):
        await store.get(key, 0, 1)
    with pytest.raises(ValueError, match="no key"):
        await store.size(key)
    with pytest.raises(ValueError, match="no key"):
        await store.delete(["a", key])


async def test_unusual_keys(store: ObjectStore) -> None:
    unusual = ["...", "..a/.b", "-", "_/-/._", "x" * 200, "/".join(["y" * 99] * 8), "A", "a"]
    for key in unusual:
        await store.put(key, [key.encode()])
    assert await keys(store) == sorted(unusual)
    for key in unusual:
        assert await store.get(key, 0, 1000) == key.encode()
    await store.delete(unusual)
    assert await keys(store) == []


@pytest.mark.parametrize("prefix", ["a", "/", "a//", "../", "a /"])
async def test_what_is_no_prefix(store: ObjectStore, prefix: str) -> None:
    with pytest.raises(ValueError, match="no prefix"):
        await keys(store, prefix)


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (6, 5), (-2, -1)])
async def test_what_is_no_range(store: ObjectStore, start: int, end: int) -> None:
    await store.put(KEY, [b"0123456789"])
    with pytest.raises(ValueError, match="no range"):
        await store.get(KEY, start, end)
