"""An object store in a folder: a disk of its own, or a network file system that all brokers mount.

    ROOT/topic-id/0/00000000000000000042-segment-id/00000000000000000042.log    an object, under its key
    ROOT/~uploads/1f0c...                                                       one to be: no key has a `~` in it
    ROOT/~store                                                                 says that this is an object store

An object is written there, synced, and renamed to its key; then the folders on the way to it are synced. Folders that
have become empty with a deletion go too: each segment has one, and years bring many. What a crash left in ~uploads is
removed with the first put after a start, once it is a day old.

A root that is missing is made, but not one that this broker has written to before: it is the place where a file system
is to be mounted then, and what came to lie below that would be lost from sight.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import TypeVar

import trio

from kwire.ports.bundle import Ports
from kwire.ports.files import Buffer, File
from kwire.remote.errors import AccessDenied, ObjectNotFound, RemoteStorageError, RemoteStorageUnavailable
from kwire.remote.keys import check_key, check_prefix, check_range, is_key
from kwire.remote.object_store import Found, Part
from kwire.remote.parts import pieces

T = TypeVar("T")

UPLOADS = "~uploads"
MARK = "~store"
FORGOTTEN_MS = 24 * 60 * 60 * 1000
"""An upload as old as that is nobody's: the broker that began it is gone."""

PIECE_BYTES = 1 << 20
"""Of a file, held in memory while it is copied."""
STEP_PIECES = 8
"""Copied by a worker thread before others get their turn."""

ATTEMPTS = 3
"""To put an object into its folder, which another broker may find empty and remove."""

_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NEVER = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.EINVAL})


class DirectoryObjectStore:
    """Objects as files. A call takes as long as the file system does: nothing can end a system call that hangs."""

    def __init__(self, root: str, ports: Ports, written: str | None = None) -> None:
        """`written`: a file in which the broker keeps the roots that it has written to, on a disk of its own."""
        self._files = ports.files
        self._written = written
        self._preparing = trio.Lock()
        self._root = self._files.absolute(root).rstrip("/")
        self.place = self._root
        self._executor = ports.executor
        self._randomness = ports.randomness
        self._clock = ports.clock
        self._known_folders: set[str] = set()
        """Those whose names are on the disk, with all on the way to them."""

    async def put(self, key: str, parts: Sequence[Part]) -> None:
        check_key(key)
        upload = f"{self._root}/{UPLOADS}/{self._randomness.uuid().hex()}"
        async with nullcontext() if self._root in self._known_folders else self._preparing:
            file = await self._run("put", key, self._begin, upload)
        try:
            source = pieces(parts, PIECE_BYTES)
            position = 0
            while written := await self._executor.run(_copy, key, file, source, position):
                position += written
            await self._run("put", key, self._finish, file, upload, f"{self._root}/{key}")
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._executor.run(self._discard, file, upload)
            raise

    async def get(self, key: str, start: int, end: int) -> bytes:
        check_key(key)
        check_range(start, end)
        return await self._run("get", key, self._read, key, start, end)

    async def size(self, key: str) -> int:
        check_key(key)
        return await self._run("size", key, self._size, key)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        for key in keys:
            with suppress(ObjectNotFound):
                await self._run("delete", key, self._remove, f"{self._root}/{key}")
        for folder in dict.fromkeys(f"{self._root}/{key}".rpartition("/")[0] for key in keys):
            with suppress(ObjectNotFound):
                await self._run("delete", folder, self._tidy, folder)

    async def list(self, prefix: str) -> AsyncIterator[Found]:
        check_prefix(prefix)
        folders = [prefix]
        while folders:
            found, deeper = await self._run("list", prefix, self._look_into, folders.pop())
            folders += deeper
            for one in found:
                yield one

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()

    async def _run(self, operation: str, key: str, function: Callable[..., T], *arguments: object) -> T:
        """Runs a function of the store's own files in a worker thread."""
        try:
            return await self._executor.run(function, *arguments)
        except OSError as error:
            raise _meaning(error, operation, key) from error

    # For worker threads

    def _begin(self, upload: str) -> File:
        if self._root not in self._known_folders or not self._files.exists(f"{self._root}/{MARK}"):
            self._prepare()
        return self._files.open(upload, create=True)

    def _look(self) -> bool:
        """Whether the root is an object store. Raises RemoteStorageUnavailable where it was one, and is not now."""
        if self._files.exists(f"{self._root}/{MARK}"):
            return True
        if self._root in self._roots_written():
            raise RemoteStorageUnavailable(
                f"{self._root} is not the object store that was written to before (it has no file {MARK}): is its file "
                f"system mounted? To begin anew there, take it out of {self._written}"
            )
        return False

    def _roots_written(self) -> Sequence[str]:
        if self._written is None or not self._files.exists(self._written):
            return []
        return self._files.read(self._written).decode().splitlines()

    def _prepare(self) -> None:
        uploads = f"{self._root}/{UPLOADS}"
        is_store = self._look()
        self._files.make_dirs(uploads)
        for folder in _ways_to(uploads):
            with suppress(PermissionError):  # far up, where this broker has made nothing
                self._files.sync_dir(folder)
        if not is_store:
            self._files.open(f"{self._root}/{MARK}", create=True).close()
            self._files.sync_dir(self._root)
        roots = self._roots_written()
        if self._written is not None and self._root not in roots:
            self._files.write_atomically(self._written, "".join(f"{root}\n" for root in (*roots, self._root)).encode())
        forgotten = self._clock.wall_ms() - FORGOTTEN_MS
        for name in self._files.list(uploads):
            with suppress(FileNotFoundError):  # another broker does the same
                if self._files.modified_ms(f"{uploads}/{name}") < forgotten:
                    self._files.remove(f"{uploads}/{name}")
        self._known_folders.add(self._root)

    def _finish(self, file: File, upload: str, path: str) -> None:
        file.sync()
        file.close()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._place(upload, path)
                return
            except FileNotFoundError:
                if attempt == ATTEMPTS:
                    raise

    def _place(self, upload: str, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder not in self._known_folders or not self._files.exists(folder):
            self._files.make_dirs(folder)
            for outer in _ways_to(folder, below=self._root):
                self._files.sync_dir(outer)
            self._known_folders.add(folder)
        self._files.rename(upload, path)
        self._files.sync_dir(folder)

    def _tidy(self, folder: str) -> None:
        """Makes deletions in a folder durable; removes it where nothing is left in it, and likewise those around it."""
        while folder != self._root:
            self._known_folders.discard(folder)
            try:
                self._files.remove_dir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                break
            folder = folder.rpartition("/")[0]
        self._files.sync_dir(folder)

    def _discard(self, file: File, upload: str) -> None:
        file.close()
        with suppress(OSError):
            self._files.remove(upload)

    def _remove(self, path: str) -> None:
        try:
            self._files.remove(path)
        except FileNotFoundError:
            self._look()
            raise

    def _open(self, key: str) -> File:
        try:
            return self._files.open(f"{self._root}/{key}")
        except FileNotFoundError:
            self._look()
            raise

    def _read(self, key: str, start: int, end: int) -> bytes:
        file = self._open(key)
        try:
            size = min(end, file.size()) - start
            return file.pread(size, start) if size > 0 else b""
        finally:
            file.close()

    def _size(self, key: str) -> int:
        file = self._open(key)
        try:
            return file.size()
        finally:
            file.close()

    def _look_into(self, prefix: str) -> tuple[Sequence[Found], Sequence[str]]:
        """The objects right in a folder, and the folders in it."""
        folder = f"{self._root}/{prefix}".rstrip("/") or "/"
        found, deeper = [], []
        names = self._names(folder)
        if not names:
            self._look()
        for name in names or ():
            key, path = prefix + name, f"{folder}/{name}"
            if not is_key(key):
                continue
            if self._names(path) is not None:
                deeper.append(key + "/")
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                found.append(Found(key, self._files.file_size(path), self._files.modified_ms(path)))
        return found, deeper

    def _names(self, path: str) -> Sequence[str] | None:
        try:
            return self._files.list(path)
        except (FileNotFoundError, NotADirectoryError):
            return None


def _ways_to(folder: str, below: str = "") -> Iterator[str]:
    """The folders on the way to one (itself excluded), from `below` on, or else from the root of all folders."""
    for at, character in enumerate(folder):
        if character == "/" and at >= len(below):
            yield folder[:at] or "/"


def _copy(key: str, file: File, source: Iterator[Buffer], position: int) -> int:
    """Writes the next pieces to the file; returns how many bytes they were, 0 at the end."""
    written = 0
    for _ in range(STEP_PIECES):
        piece = next(source, None)  # raises OSError, which is not the store's, where it cannot be read
        if piece is None:
            break
        try:
            written += file.pwrite([piece], position + written)
        except OSError as error:
            raise _meaning(error, "put", key) from error
    return written


def _meaning(error: OSError, operation: str, key: str) -> RemoteStorageError:
    message = f"{operation} {key}: {error.strerror or error}"
    if error.errno in _NOT_THERE and operation in ("get", "size", "delete"):
        return ObjectNotFound(message)
    if error.errno in _DENIED:
        return AccessDenied(message)
    if error.errno in _NEVER:
        return RemoteStorageError(message)
    return RemoteStorageUnavailable(message)
