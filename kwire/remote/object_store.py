"""What an object store is: whole objects of bytes by key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from kwire.ports.files import FileSlice

Part = bytes | FileSlice
"""A piece of an object to be: bytes, or a range of a file that nobody changes until the put has returned."""


class Found(NamedTuple):
    """An object that a listing named."""

    key: str
    size: int
    modified_ms: int
    """When it was put, in milliseconds since the Unix epoch, by the store's clock."""


class ObjectStore(Protocol):
    """Whole objects of bytes by key; any number of calls may be under way at once, by any number of brokers.

    Keys are as `kwire.remote.keys` has them. No key may continue another one with a slash (`a` and `a/b`): a store of
    files cannot have both. Every call ends in bounded time and raises RemoteStorageError where it fails, with
    `retriable` set where the same call may succeed later; ValueError for what is no key. A call that failed or was
    cancelled may have done its work, or may do it a little later; except that a put which raised ValueError or
    OSError has done nothing.
    """

    place: str
    """What an administrator calls it: s3://bucket/, or the path of a directory."""

    async def put(self, key: str, parts: Sequence[Part]) -> None:
        """Makes an object of all parts in order. It is durable when this returns.

        Whole or not at all: readers see all of the object, or what was there before (nothing, mostly). To put the same
        content again is fine, that is how a failed put is tried again. Files are streamed in bounded memory. OSError
        where a file cannot be read or ends before its slice does.
        """

    async def get(self, key: str, start: int, end: int) -> bytes:
        """The bytes [start, end) of an object; fewer only where it ends before (none at all from its end on).

        ObjectNotFound where there is none. 0 <= start <= end. All of the answer is held in memory.
        """

    async def size(self, key: str) -> int:
        """The bytes of an object; ObjectNotFound where there is none."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Removes objects; those that are not there are fine. Some may be gone where it fails."""

    def list(self, prefix: str) -> AsyncIterator[Found]:
        """Every object whose key begins with `prefix`, which is empty or ends with a slash; in no order.

        An object put or deleted meanwhile may be among them or not.
        """

    async def close(self) -> None:
        """Lets go of connections and threads. No call may be under way or come later."""
