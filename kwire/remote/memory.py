"""An object store in memory, for simulation and tests: what it keeps and what it does wrong is under control."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import trio

from kwire.ports.clock import Clock
from kwire.remote.errors import AccessDenied, ObjectNotFound, RemoteStorageTimeout, RemoteStorageUnavailable
from kwire.remote.faults import Fault, Faults, Kind
from kwire.remote.keys import check_key, check_prefix, check_range
from kwire.remote.object_store import Found, Part
from kwire.remote.parts import pieces

_PIECE_BYTES = 1 << 20


class MemoryObjectStore:
    """Objects in a dict. Brokers that share one store share the object; each may have faults of its own.

    `faults` may be replaced at any time. Waiting is Trio's, so that it takes no time on a mock clock.
    """

    def __init__(self, clock: Clock, faults: Faults | None = None) -> None:
        self.place = "memory"
        self.faults = faults
        self._clock = clock
        self._objects: dict[str, tuple[bytes, int]] = {}

    def sharing(self, faults: Faults | None = None) -> MemoryObjectStore:
        """Another way to the same objects, with its own faults."""
        other = MemoryObjectStore(self._clock, faults)
        other._objects = self._objects
        return other

    async def put(self, key: str, parts: Sequence[Part]) -> None:
        check_key(key)
        fault = await self._begin("put", key)
        content = bytearray()
        for piece in pieces(parts, _PIECE_BYTES):
            content += piece
        if fault is not None and fault.kind is Kind.TORN:
            raise RemoteStorageUnavailable(f"put {key}: the connection was cut")
        self._objects[key] = (bytes(content), self._clock.wall_ms())
        _end(fault, "put", key)

    async def get(self, key: str, start: int, end: int) -> bytes:
        check_key(key)
        check_range(start, end)
        fault = await self._begin("get", key)
        content, _ = self._object("get", key)
        _end(fault, "get", key)
        return content[start:end]

    async def size(self, key: str) -> int:
        check_key(key)
        fault = await self._begin("size", key)
        content, _ = self._object("size", key)
        _end(fault, "size", key)
        return len(content)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        if not keys:
            return
        fault = await self._begin("delete", keys[0])
        torn = fault is not None and fault.kind is Kind.TORN
        for key in keys[: len(keys) // 2] if torn else keys:
            self._objects.pop(key, None)
        _end(fault, "delete", keys[0])

    async def list(self, prefix: str) -> AsyncIterator[Found]:
        check_prefix(prefix)
        fault = await self._begin("list", prefix)
        found = [
            Found(key, len(content), modified_ms)
            for key, (content, modified_ms) in self._objects.items()
            if key.startswith(prefix)
        ]
        torn = fault is not None and fault.kind is Kind.TORN
        for one in found[: len(found) // 2] if torn else found:
            yield one
        _end(fault, "list", prefix)

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()

    def _object(self, operation: str, key: str) -> tuple[bytes, int]:
        found = self._objects.get(key)
        if found is None:
            raise ObjectNotFound(f"{operation} {key}: there is no such object")
        return found

    async def _begin(self, operation: str, key: str) -> Fault | None:
        """Waits and fails as the call's fault says; what is to happen after the work is returned."""
        await trio.lowlevel.checkpoint()
        fault = self.faults.draw(operation, key) if self.faults is not None else None
        if fault is None:
            return None
        await trio.sleep(fault.seconds)
        match fault.kind:
            case Kind.UNAVAILABLE:
                raise RemoteStorageUnavailable(f"{operation} {key}: reduce your request rate")
            case Kind.TIMEOUT:
                raise RemoteStorageTimeout(f"{operation} {key}: no answer in {fault.seconds:g} s")
            case Kind.DENIED:
                raise AccessDenied(f"{operation} {key}: access denied")
        return fault


def _end(fault: Fault | None, operation: str, key: str) -> None:
    """Fails after the work where the fault is of that kind."""
    if fault is not None and fault.kind in (Kind.LOST_ANSWER, Kind.TORN):
        raise RemoteStorageUnavailable(f"{operation} {key}: the connection was cut")
