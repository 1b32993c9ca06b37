"""The store in S3 behind a network that spoils exchanges: what is done, what is said, what is there afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from jvm.s3proxy import S3Proxy
from kwire.remote import s3
from kwire.remote.errors import (
    AccessDenied,
    ObjectNotFound,
    RemoteStorageError,
    RemoteStorageTimeout,
    RemoteStorageUnavailable,
)
from kwire.remote.s3 import S3ObjectStore
from tests.remote.conformance import file_of, keys
from tests.remote.faulty_proxy import FaultyProxy, Kind, Request, always, faulty_proxy, times
from tests.remote.s3 import s3_config

MIB = 1 << 20
SMALL = b"0123456789" * 100
LARGE = bytes(range(251)) * (11 * MIB // 251)
PATIENCE = 200.0
"""Seconds in which every call must have ended, one way or the other."""


@pytest.fixture
async def proxy(s3_server: S3Proxy) -> AsyncIterator[FaultyProxy]:
    async with faulty_proxy(s3_server.host, s3_server.port) as proxy:
        yield proxy


def through(proxy: FaultyProxy, server: S3Proxy, bucket: str, **more: object) -> S3ObjectStore:
    settings = {"s3_multipart_upload_part_size": 5 * MIB, "s3_endpoint_url": proxy.endpoint} | more
    return S3ObjectStore(s3_config(server, bucket, **settings))


HANGING = (Kind.HANG, Kind.HANG_AFTER, Kind.TRICKLE)


@pytest.fixture
async def store(
    request: pytest.FixtureRequest, proxy: FaultyProxy, s3_server: S3Proxy, s3_bucket: str
) -> AsyncIterator[S3ObjectStore]:
    """Tries for a long time, and is patient with each attempt unless the test is about those that hang."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    attempt = 2_000 if parameters.get("kind") in HANGING else 20_000
    store = through(proxy, s3_server, s3_bucket, s3_api_call_attempt_timeout=attempt)
    yield store
    await store.close()


@pytest.fixture
async def hasty(proxy: FaultyProxy, s3_server: S3Proxy, s3_bucket: str) -> AsyncIterator[S3ObjectStore]:
    """Gives up soon."""
    store = through(proxy, s3_server, s3_bucket, s3_api_call_timeout=1500, s3_api_call_attempt_timeout=1000)
    yield store
    await store.close()


@pytest.fixture
async def brief(proxy: FaultyProxy, s3_server: S3Proxy, s3_bucket: str) -> AsyncIterator[S3ObjectStore]:
    """Does not try for long, but waits for each attempt: for faults that do not hang."""
    store = through(proxy, s3_server, s3_bucket, s3_api_call_timeout=20_500, s3_api_call_attempt_timeout=20_000)
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *((kind, "put") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.LOST_ANSWER, Kind.HANG_AFTER, Kind.CUT_REQUEST)),
        *((kind, "create") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.LOST_ANSWER)),
        *((kind, "part") for kind in (Kind.SLOW_DOWN, Kind.LOST_ANSWER, Kind.CUT_REQUEST)),
        *((kind, "complete") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.ERROR_IN_200)),
    ],
)
async def test_an_upload_is_tried_again(store: S3ObjectStore, proxy: FaultyProxy, kind: Kind, step: str) -> None:
    content = SMALL if step == "put" else LARGE
    count = 1 if kind in (Kind.HANG, Kind.HANG_AFTER) else 2
    proxy.plan = times(count, kind, step)
    with trio.fail_after(PATIENCE):
        await store.put("a", [content])
    assert proxy.spoilt == [kind] * count
    assert await store.get("a", 0, 1 << 30) == content


@pytest.mark.parametrize("kind", [Kind.LOST_ANSWER, Kind.HANG_AFTER])
async def test_an_upload_whose_end_was_not_heard_of(store: S3ObjectStore, proxy: FaultyProxy, kind: Kind) -> None:
    """Completed again it may be refused, as there is no such upload any more: then all of it may be put again."""
    proxy.plan = times(1, kind, "complete")
    with trio.fail_after(PATIENCE):
        with suppress(RemoteStorageUnavailable):
            await store.put("a", [LARGE])
        assert await store.get("a", 0, 1 << 30) == LARGE
        await store.put("a", [LARGE])
    assert await store.get("a", 0, 1 << 30) == LARGE


@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "overwritten"])
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *((kind, "put") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.CUT_REQUEST)),
        *((kind, "part") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.CUT_REQUEST, Kind.LOST_ANSWER)),
        *((kind, "complete") for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.ERROR_IN_200)),
    ],
)
async def test_an_upload_that_fails_leaves_what_was_there(
    store: S3ObjectStore, hasty: S3ObjectStore, proxy: FaultyProxy, kind: Kind, step: str, old: bytes | None
) -> None:
    if old is not None:
        await store.put("a", [old])
    proxy.plan = always(kind, step)
    with trio.fail_after(PATIENCE), pytest.raises(RemoteStorageError) as info:
        await hasty.put("a", [SMALL if step == "put" else LARGE])
    assert info.value.retriable
    proxy.plan = None
    if old is not None:
        assert await store.get("a", 0, 1 << 30) == old
    else:
        assert await keys(store) == []
    if step != "put":
        assert proxy.seen[-2] == "abort"


async def test_an_upload_is_aborted_where_a_file_cannot_be_read(
    store: S3ObjectStore, proxy: FaultyProxy, tmp_path: Path
) -> None:
    with trio.fail_after(PATIENCE), pytest.raises(OSError, match="ends before byte"):
        await store.put("a", [LARGE, file_of(tmp_path / "short", b"x", 0, 2)])
    assert proxy.seen[-1] == "abort"
    assert await keys(store) == []


async def test_a_file_that_cannot_be_read_is_told_of_though_the_abort_fails(
    brief: S3ObjectStore, proxy: FaultyProxy, tmp_path: Path
) -> None:
    proxy.plan = always(Kind.SLOW_DOWN, "abort")
    with trio.fail_after(PATIENCE), pytest.raises(OSError, match="ends before byte"):
        await brief.put("a", [LARGE, file_of(tmp_path / "short", b"x", 0, 2)])
    assert await keys(brief) == []


async def test_a_cancelled_upload_is_aborted(
    store: S3ObjectStore, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "GRACE_SECONDS", PATIENCE)  # however slow the machine
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.put, "a", [LARGE * 6])
            await proxy.until(lambda: proxy.seen.count("part") >= 3)
            nursery.cancel_scope.cancel()
        assert proxy.seen[-1] == "abort"
        assert await keys(store) == []


async def test_a_cancelled_upload_that_hangs_ends_all_the_same(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    proxy.plan = always(Kind.HANG, "create")
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.put, "a", [LARGE])
            await proxy.until(lambda: bool(proxy.spoilt))
            nursery.cancel_scope.cancel()
        assert await keys(store) == []


DOWNLOADS = [Kind.SLOW_DOWN, Kind.HANG, Kind.LOST_ANSWER, Kind.CUT_ANSWER, Kind.CUT_HEAD, Kind.TRICKLE]


@pytest.mark.parametrize("kind", DOWNLOADS)
async def test_a_download_is_tried_again(store: S3ObjectStore, proxy: FaultyProxy, kind: Kind) -> None:
    content = LARGE[: 3 * MIB]
    await store.put("a", [content])
    proxy.plan = times(1, kind, "get")
    with trio.fail_after(PATIENCE):
        assert await store.get("a", 1000, 2 * MIB) == content[1000 : 2 * MIB]
    assert proxy.spoilt == [kind]


@pytest.mark.parametrize("kind", [*DOWNLOADS, Kind.WHOLE, Kind.OTHER_RANGE, Kind.SHORT])
async def test_a_download_that_fails_gives_no_bytes(
    store: S3ObjectStore, hasty: S3ObjectStore, proxy: FaultyProxy, kind: Kind
) -> None:
    await store.put("a", [SMALL])
    proxy.plan = always(kind, "get")
    with trio.fail_after(PATIENCE), pytest.raises(RemoteStorageError) as info:
        await hasty.get("a", 100, 900)
    assert info.value.retriable
    assert "\n" not in str(info.value)
    proxy.plan = None
    assert await store.get("a", 100, 900) == SMALL[100:900]


@pytest.mark.parametrize(
    ("kind", "expected", "reason"),
    [
        (Kind.SLOW_DOWN, RemoteStorageUnavailable, "SlowDown: Reduce your request rate."),
        (Kind.HANG, RemoteStorageTimeout, "no"),
    ],
)
async def test_why_it_failed(
    brief: S3ObjectStore,
    hasty: S3ObjectStore,
    proxy: FaultyProxy,
    kind: Kind,
    expected: type[RemoteStorageError],
    reason: str,
) -> None:
    proxy.plan = always(kind)
    store = hasty if kind is Kind.HANG else brief
    calls = ((store.get("a", 0, 1), "get a"), (store.put("a", []), "put a"), (store.delete(["a"]), "delete a"))
    for call, what in calls:
        with trio.fail_after(PATIENCE), pytest.raises(expected) as info:
            await call
        assert str(info.value).startswith(f"{what}: {reason}")


async def test_a_cancelled_download_ends(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    await store.put("a", [SMALL])
    proxy.plan = always(Kind.HANG, "get")
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.get, "a", 0, 10)
            await proxy.until(lambda: bool(proxy.spoilt))
            nursery.cancel_scope.cancel()
        proxy.plan = None
        assert await store.get("a", 0, 10) == SMALL[:10]


@pytest.mark.parametrize("kind", [Kind.SLOW_DOWN, Kind.LOST_ANSWER, Kind.CUT_ANSWER, Kind.HANG_AFTER])
@pytest.mark.parametrize("count", [1, 3])
async def test_a_deletion_is_tried_again(store: S3ObjectStore, proxy: FaultyProxy, kind: Kind, count: int) -> None:
    """Or is said to have failed, and may be asked for again."""
    for number in range(4):
        await store.put(f"a/{number}", [b""])
    proxy.plan = times(1, kind, "delete")
    doomed = [f"a/{number}" for number in range(count)]
    with trio.fail_after(PATIENCE):
        try:
            await store.delete(doomed)
        except (RemoteStorageUnavailable, RemoteStorageTimeout):
            await store.delete(doomed)
        assert await keys(store) == [f"a/{number}" for number in range(count, 4)]
    assert proxy.spoilt == [kind]


async def test_a_key_that_may_not_be_deleted(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    proxy.plan = always(Kind.KEY_REFUSED, "delete")
    with pytest.raises(AccessDenied, match=r"^delete a/0: a/1: AccessDenied: Access Denied$"):
        await store.delete(["a/0", "a/1"])


@pytest.mark.parametrize("kind", [Kind.SLOW_DOWN, Kind.CUT_ANSWER, Kind.LOST_ANSWER])
async def test_a_listing_of_more_than_one_page(
    store: S3ObjectStore, proxy: FaultyProxy, s3_server: S3Proxy, s3_bucket: str, kind: Kind
) -> None:
    folder = s3_server.objects / s3_bucket / "many"
    folder.mkdir()
    for number in range(1100):
        (folder / f"{number:04}").write_bytes(b"x" * (number % 3))
    pages = 0

    def second(request: Request) -> Kind | None:
        nonlocal pages
        pages += request.step == "list"
        return kind if pages == 2 else None

    proxy.plan = second
    with trio.fail_after(PATIENCE):
        try:
            found = {one.key: one.size async for one in store.list("many/")}
        except RemoteStorageUnavailable:
            found = {one.key: one.size async for one in store.list("many/")}
    assert found == {f"many/{number:04}": number % 3 for number in range(1100)}
    assert proxy.spoilt == [kind]


async def test_a_listing_that_fails(store: S3ObjectStore, hasty: S3ObjectStore, proxy: FaultyProxy) -> None:
    await store.put("a", [b""])
    for kind in (Kind.SLOW_DOWN, Kind.HANG, Kind.CUT_ANSWER):
        proxy.plan = always(kind)
        with trio.fail_after(PATIENCE), pytest.raises(RemoteStorageError) as info:
            await keys(hasty)
        assert info.value.retriable
    proxy.plan = None
    assert await keys(store) == ["a"]


async def test_a_server_that_comes_back(store: S3ObjectStore, proxy: FaultyProxy) -> None:
    """Ten refusals in a row are no reason to give up while there is time."""
    proxy.plan = times(7, Kind.SLOW_DOWN)
    with trio.fail_after(PATIENCE):
        await store.put("a", [b"x"])
    with pytest.raises(ObjectNotFound):
        await store.get("b", 0, 1)


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_the_storage_class(proxy: FaultyProxy, s3_server: S3Proxy, s3_bucket: str, content: bytes) -> None:
    asked = set()

    def note(request: Request) -> None:
        if request.step in ("put", "create"):
            asked.add(request.headers.get("x-amz-storage-class"))

    proxy.plan = note
    for more in ({}, {"s3_storage_class": "STANDARD_IA"}):
        store = through(proxy, s3_server, s3_bucket, **more)
        await store.put("a", [content])
        assert await store.get("a", 0, 10) == content[:10]
        await store.close()
    assert asked == {None, "STANDARD_IA"}
