"""The file system on the simulated disk."""

from __future__ import annotations

import errno
import os
import posixpath
import random
from collections.abc import Sequence

from kwire.ports.clock import Clock
from kwire.ports.files import Buffer, File, FileLock
from kwire.ports.memory_files import MemoryFileLock
from kwire.ports.simulated_disk.content import Content
from kwire.ports.simulated_disk.faults import CHANGES, Call, Effect, Fault, Killed
from kwire.ports.simulated_disk.names import Names
from kwire.ports.simulated_disk.order import Order


class SimulatedFile:
    """An open file of a `SimulatedDisk`. It refers to the content, not to the name."""

    __slots__ = ("__weakref__", "_closed", "_content", "_disk", "path")

    def __init__(self, disk: SimulatedDisk, path: str, content: Content) -> None:
        self.path = path
        self._disk = disk
        self._content = content
        self._closed = False

    def pread(self, size: int, position: int) -> bytes:
        self._begin("read", size)
        return bytes(self._content.data[position : position + size])

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        data = b"".join(buffers)
        effect = self._begin("write", len(data))
        done = data if effect is None else data[: int(len(data) * effect.share)]
        if done:
            self._content.write(self._disk.moment, position, done)
            self._content.modified_ms = self._disk.now_ms()
        self._disk.fail(effect, self.path)
        return len(data)

    def size(self) -> int:
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        effect = self._begin("truncate", size)
        if effect is None:
            self._content.truncate(self._disk.moment, size)
            self._content.modified_ms = self._disk.now_ms()
        self._disk.fail(effect, self.path)

    def sync(self) -> None:
        effect = self._begin("sync", 0)
        if effect is None:
            self._disk.synced(self._content)
        elif effect.error is not None:
            self._disk.sync_failed(self._content)
        self._disk.fail(effect, self.path)

    def begin_writing(self, position: int, size: int) -> None:
        pass

    def resident(self, position: int, size: int) -> bool:
        return True

    def read_resident(self, size: int, position: int) -> Buffer | None:
        data = self.pread(size, position)
        return data if len(data) == size else None

    def is_loading_due(self, position: int, size: int) -> bool:
        return False

    def load(self, position: int, size: int) -> None:
        pass

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._closed = True

    def _begin(self, operation: str, size: int) -> Effect | None:
        if self._closed:
            raise OSError(errno.EBADF, "Bad file descriptor", self.path)
        return self._disk.begin(operation, self.path, size)


class SimulatedDisk:
    """A `FileSystem` in memory. `fault` says what goes wrong; `restart` and `cut_power` begin another life."""

    def __init__(
        self, clock: Clock | None = None, *, order: Order = Order.JOURNAL, seed: int = 0, total_bytes: int = 1 << 40
    ) -> None:
        self.fault: Fault | None = None
        self.order = order
        self.calls = 0
        """Changes asked for since the last start (`faults.CHANGES`)."""
        self.syncs = 0
        """Of files, folders and volumes, over all lives."""
        self.moment = 0
        """Counts changes over all lives."""
        self._clock = clock
        self._draw = random.Random(seed)
        self._total_bytes = total_bytes
        self._names = Names()
        self._locked: set[str] = set()
        self._journal_end = 0
        """Up to which moment the journal is on the disk."""
        self.ended = False
        """Whether the process was killed, and no other has begun."""

    # Lives

    def restart(self) -> None:
        """Another process begins: the page cache is as the last one left it, however it ended; its locks are free."""
        self.fault = None
        self.calls = 0
        self.ended = False
        self._locked = set()

    def cut_power(self) -> None:
        """The machine goes down, and comes back with what was on the disk, chance deciding about the rest."""
        everything, nothing = self.moment + 1, self._journal_end
        journal_end = self._draw.choice((nothing, everything, self._draw.randint(nothing, everything)))
        self._names.lose(self.order, self._draw, journal_end)
        for _, content in sorted(self._names.tree.files.items()):
            content.lose(content.after_power_cut(self.order, self._draw, journal_end))
        self._journal_end = self.moment + 1
        self.restart()

    # What files need of the disk

    def now_ms(self) -> int:
        return self._clock.wall_ms() if self._clock else 0

    def begin(self, operation: str, path: str, size: int = 0) -> Effect | None:
        """A call begins; returns what becomes of it if that is not what was asked. Raises Killed after the end."""
        if self.ended:
            raise Killed(f"{operation} of {path} after the end")
        effect = self.fault(Call(self.calls, operation, path, size)) if self.fault else None
        if operation in CHANGES:
            self.calls += 1
            self.moment += 1
        if operation.startswith("sync"):
            self.syncs += 1
        return effect

    def fail(self, effect: Effect | None, path: str) -> None:
        """Ends a call as its effect has it."""
        if effect is None:
            return
        if effect.killed:
            self.ended = True
            raise Killed(path)
        if effect.error is not None:
            raise OSError(effect.error, os.strerror(effect.error), path)

    def synced(self, content: Content) -> None:
        content.sync()
        if self.order is Order.JOURNAL:
            self._commit()

    def sync_failed(self, content: Content) -> None:
        content.give_up(self.order, self._draw, self._journal_end)

    def _commit(self) -> None:
        self._names.sync()
        self._journal_end = self.moment + 1

    def _call(self, operation: str, path: str, size: int = 0) -> bool:
        """Whether the call is to be done."""
        effect = self.begin(operation, path, size)
        self.fail(effect, path)
        return effect is None

    # The file system

    def open(self, path: str, *, create: bool = False) -> File:
        content = self._names.tree.files.get(path)
        self._call("open" if content is not None or not create else "create", path)
        if content is None:
            if not create or posixpath.dirname(path) not in self._names.tree.folders:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            content = Content(self.now_ms())
            self._names.create(self.moment, path, content)
        return SimulatedFile(self, path, content)

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"

    def exists(self, path: str) -> bool:
        return path in self._names.tree.files or path in self._names.tree.folders

    def file_size(self, path: str) -> int:
        return len(self._content(path).data)

    def modified_ms(self, path: str) -> int:
        return self._content(path).modified_ms

    def set_modified_ms(self, path: str, ms: int) -> None:
        self._call("open", path)
        self._content(path).modified_ms = ms

    def list(self, path: str) -> list[str]:
        self._call("list", path)
        tree = self._names.tree
        if path in tree.files:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        if path not in tree.folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return sorted(posixpath.basename(name) for name in [*tree.files, *tree.folders] if _lies_in(name, path))

    def make_dirs(self, path: str) -> None:
        missing = []
        while path and path not in self._names.tree.folders:
            missing.append(path)
            path = posixpath.dirname(path)
        for folder in reversed(missing):
            if self._call("make_dir", folder):
                self._names.make_folder(self.moment, folder)

    def rename(self, old: str, new: str) -> None:
        self._call("rename", old)
        tree = self._names.tree
        if posixpath.dirname(new) not in tree.folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", new)
        if old in tree.folders:
            if new in tree.folders and self.list(new):
                raise OSError(errno.ENOTEMPTY, "Directory not empty", new)
        else:
            self._content(old)
        self._names.rename(self.moment, old, new)

    def remove(self, path: str) -> None:
        self._call("remove", path)
        self._content(path)
        self._names.remove(self.moment, path)

    def remove_dir(self, path: str) -> None:
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self._call("remove", path)
        self._names.remove(self.moment, path)

    def remove_tree(self, path: str) -> None:
        for name in self.list(path):
            inner = f"{path}/{name}"
            if inner in self._names.tree.folders:
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self.remove_dir(path)

    def read(self, path: str) -> bytes:
        self._call("read", path)
        return bytes(self._content(path).data)

    def write(self, path: str, data: bytes) -> None:
        file = self.open(path, create=True)
        if file.size():
            file.truncate(0)
        file.pwrite([data], 0)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        self.write(temporary, data)
        if sync:
            self.open(temporary).sync()
        self.rename(temporary, path)
        if sync:
            self.sync_dir(posixpath.dirname(path))

    def sync_dir(self, path: str) -> None:
        if not self._call("sync_dir", path):
            return
        if path not in self._names.tree.folders:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if self.order is Order.JOURNAL:
            self._commit()
        else:
            self._names.sync_folder(path)

    def sync_volume(self, path: str) -> None:
        if self._call("sync_volume", path):
            for content in self._names.tree.files.values():
                content.sync()
            self._commit()

    def lock(self, path: str) -> FileLock:
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path)
        self.open(path, create=True)
        self._locked.add(path)
        return MemoryFileLock(self._locked, path)

    def space(self, path: str) -> tuple[int, int]:
        used = sum(len(content.data) for content in self._names.tree.files.values())
        return self._total_bytes, max(0, self._total_bytes - used)

    def volume(self, path: str) -> int:
        return 0

    def _content(self, path: str) -> Content:
        content = self._names.tree.files.get(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return content


def _lies_in(name: str, folder: str) -> bool:
    if name in ("", "/", "."):
        return False
    return posixpath.dirname(name) == (folder.rstrip("/") or "/")
