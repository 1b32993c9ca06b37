"""Random calls of an object store that may fail, beside a model of what may be there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st

from kwire.remote.errors import ObjectNotFound, RemoteStorageError
from kwire.remote.object_store import ObjectStore

MIB = 1 << 20
NAMES = ("a", "b/c")
CONTENTS = (b"", b"0123456789" * 50, bytes(range(256)) * 20, bytes(range(251)) * (6 * MIB // 251))
"""The last one is uploaded to S3 in two parts."""


class Call(NamedTuple):
    what: str
    name: str
    content: int
    """Which of CONTENTS is put."""
    start: int
    size: int
    """What is read."""


calls = st.builds(
    Call,
    st.sampled_from(["put", "put", "get", "get", "size", "delete", "list"]),
    st.sampled_from(NAMES),
    st.integers(0, len(CONTENTS) - 1),
    st.integers(0, 600),
    st.integers(0, 7 * MIB),
)


class Model:
    """What each name may hold: the contents (None: nothing) that calls so far have left possible."""

    def __init__(self) -> None:
        self.possible: dict[str, set[int | None]] = {name: {None} for name in NAMES}

    async def call(self, call: Call, store: ObjectStore) -> None:
        """Does it, and looks whether what it says can be. An error that may pass is no matter, others are raised."""
        try:
            await self._call(call, store)
        except RemoteStorageError as error:
            if not error.retriable:
                raise

    async def read_everything(self, store: ObjectStore) -> None:
        """When nothing fails any more."""
        for name in NAMES:
            await self._call(Call("get", name, 0, 0, 7 * MIB), store)
        await self._call(Call("list", "", 0, 0, 0), store)

    async def _call(self, call: Call, store: ObjectStore) -> None:
        name, end = call.name, call.start + call.size
        match call.what:
            case "put":
                content = CONTENTS[call.content]
                self.possible[name] = self.possible[name] | {call.content}
                await store.put(name, [content[:100], content[100:]])
                self.possible[name] = {call.content}
            case "delete":
                self.possible[name] = self.possible[name] | {None}
                await store.delete([name, "none"])
                self.possible[name] = {None}
            case "get":
                try:
                    data = await store.get(name, call.start, end)
                    self._saw(name, _all(lambda content: content[call.start : end] == data))
                except ObjectNotFound:
                    self._saw(name, {None})
            case "size":
                try:
                    size = await store.size(name)
                    self._saw(name, _all(lambda content: len(content) == size))
                except ObjectNotFound:
                    self._saw(name, {None})
            case "list":
                found = {one.key: one.size async for one in store.list("")}
                assert set(found) <= set(NAMES)
                for other in NAMES:
                    self._saw(other, _of_size(found[other]) if other in found else {None})

    def _saw(self, name: str, fits: set[int | None]) -> None:
        left = self.possible[name] & fits
        assert left, f"{name} holds what nobody can have put there"
        self.possible[name] = left


def _all(check: Callable[[bytes], bool]) -> set[int | None]:
    return {at for at, content in enumerate(CONTENTS) if check(content)}


def _of_size(size: int) -> set[int | None]:
    return _all(lambda content: len(content) == size)
