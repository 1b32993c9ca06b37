"""The store in memory: the conformance suite, and the faults that are asked of it."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock

from kwire.ports.clock import TrioClock
from kwire.ports.randomness import SeededRandomness
from kwire.remote.errors import (
    AccessDenied,
    ObjectNotFound,
    RemoteStorageError,
    RemoteStorageTimeout,
    RemoteStorageUnavailable,
)
from kwire.remote.faults import Fault, Kind, RandomFaults
from kwire.remote.memory import MemoryObjectStore
from tests.remote.conformance import *  # noqa: F403
from tests.remote.conformance import keys


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(TrioClock())


class Next:
    """The fault of the next call, once."""

    def __init__(self, fault: Fault) -> None:
        self.asked: list[tuple[str, str]] = []
        self._fault: Fault | None = fault

    def draw(self, operation: str, key: str) -> Fault | None:
        self.asked.append((operation, key))
        fault, self._fault = self._fault, None
        return fault


@pytest.mark.parametrize(
    ("kind", "error", "there"),
    [
        (Kind.UNAVAILABLE, RemoteStorageUnavailable, False),
        (Kind.TIMEOUT, RemoteStorageTimeout, False),
        (Kind.DENIED, AccessDenied, False),
        (Kind.TORN, RemoteStorageUnavailable, False),
        (Kind.LOST_ANSWER, RemoteStorageUnavailable, True),
    ],
)
async def test_a_put_that_fails(
    store: MemoryObjectStore, kind: Kind, error: type[RemoteStorageError], there: bool
) -> None:
    store.faults = Next(Fault(kind))
    with pytest.raises(error) as info:
        await store.put("a", [b"content"])
    assert info.value.retriable == (kind is not Kind.DENIED)
    assert await keys(store) == (["a"] if there else [])
    await store.put("a", [b"content"])
    assert await store.get("a", 0, 10) == b"content"


async def test_every_call_is_asked_for(store: MemoryObjectStore) -> None:
    faults = store.faults = Next(Fault(Kind.SLOW))
    await store.put("a", [b""])
    await store.get("a", 0, 1)
    await store.size("a")
    await keys(store, "b/")
    await store.delete(["a", "b"])
    assert faults.asked == [("put", "a"), ("get", "a"), ("size", "a"), ("list", "b/"), ("delete", "a")]


async def test_a_slow_call_takes_its_time(store: MemoryObjectStore, autojump_clock: MockClock) -> None:
    store.faults = Next(Fault(Kind.SLOW, 7.5))
    start = trio.current_time()
    await store.put("a", [b"content"])
    assert trio.current_time() - start == 7.5


async def test_a_delete_and_a_listing_may_end_half_way(store: MemoryObjectStore) -> None:
    for number in range(4):
        await store.put(f"a/{number}", [b""])
    store.faults = Next(Fault(Kind.TORN))
    with pytest.raises(RemoteStorageUnavailable):
        await store.delete([f"a/{number}" for number in range(4)])
    assert await keys(store) == ["a/2", "a/3"]
    store.faults = Next(Fault(Kind.TORN))
    listing = store.list("a/")
    assert (await anext(listing)).key == "a/2"
    with pytest.raises(RemoteStorageUnavailable):
        await anext(listing)


async def test_brokers_share_objects_and_not_faults(store: MemoryObjectStore) -> None:
    other = store.sharing(Next(Fault(Kind.DENIED)))
    await store.put("a", [b"content"])
    with pytest.raises(AccessDenied):
        await other.get("a", 0, 10)
    assert await other.get("a", 0, 10) == b"content"
    await other.delete(["a"])
    with pytest.raises(ObjectNotFound):
        await store.size("a")


async def outcomes(seed: int) -> list[str]:
    percent = dict.fromkeys(Kind, 10)
    store = MemoryObjectStore(TrioClock(), RandomFaults(SeededRandomness(seed), percent))
    happened = []
    for number in range(100):
        outcome = "done"
        try:
            await store.put(f"a/{number % 7}", [b"%d" % number])
        except RemoteStorageError as error:
            outcome = str(error)
        happened.append(f"{trio.current_time():.3f} {outcome}")
    with suppress(RemoteStorageError):
        await store.size("a/0")
    return happened


def test_the_same_seed_brings_the_same_faults() -> None:
    def run(seed: int) -> list[str]:
        return trio.run(outcomes, seed, clock=MockClock(autojump_threshold=0))

    assert run(1) == run(1)
    assert run(1) != run(2)
    said = {line.split(": ")[-1].split(" in ")[0] for line in run(1)}
    assert len(said) >= 5


def test_more_than_every_call_cannot_fail() -> None:
    with pytest.raises(ValueError, match="more than all"):
        RandomFaults(SeededRandomness(1), {Kind.TORN: 60, Kind.SLOW: 41})
