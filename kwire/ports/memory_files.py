"""Files in memory, for simulation and tests: what is kept, what is lost and what fails is under control.

path -> node (bytes, how much of them is synced)          a File refers to the node, not to the path,
                                                          so a removed file stays readable while open
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Sequence

from kwire.ports.clock import Clock
from kwire.ports.files import Buffer, File, FileLock

Fault = Callable[[str, str, int], int | None]
"""Asked before each operation with (operation, path, bytes): raises OSError to fail it as a whole, or returns how many
bytes of a write still reach the file before it fails with ENOSPC; None lets it pass."""


class _Node:
    """A file's content, apart from its name."""

    __slots__ = ("data", "modified_ms", "synced")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.synced = 0
        self.modified_ms = modified_ms


class MemoryFile:
    """An open file of a `MemoryFileSystem`."""

    __slots__ = ("__weakref__", "_closed", "_files", "_node", "path")

    def __init__(self, files: MemoryFileSystem, path: str, node: _Node) -> None:
        self.path = path
        self._files = files
        self._node = node
        self._closed = False

    def pread(self, size: int, position: int) -> bytes:
        self._begin("read", size)
        return bytes(self._node.data[position : position + size])

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        data = b"".join(buffers)
        torn = self._begin("write", len(data))
        whole = len(data)
        if torn is not None:
            data = data[:torn]
        content = self._node.data
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data
        self._node.synced = min(self._node.synced, position)
        self._node.modified_ms = self._files.now_ms()
        if torn is not None:
            raise OSError(errno.ENOSPC, "No space left on device", self.path)
        return whole

    def size(self) -> int:
        return len(self._node.data)

    def truncate(self, size: int) -> None:
        self._begin("truncate", size)
        content = self._node.data
        if size < len(content):
            del content[size:]
        else:
            content.extend(bytes(size - len(content)))
        self._node.synced = min(self._node.synced, size)
        self._node.modified_ms = self._files.now_ms()

    def sync(self) -> None:
        self._begin("sync", 0)
        self._node.synced = len(self._node.data)

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

    def _begin(self, operation: str, size: int) -> int | None:
        if self._closed:
            raise OSError(errno.EBADF, "Bad file descriptor", self.path)
        return self._files.check(operation, self.path, size)


class MemoryFileSystem:
    """A tree of files in memory. `fault` makes operations fail; `lose_power` forgets what was not synced."""

    def __init__(self, clock: Clock | None = None, *, total_bytes: int = 1 << 40) -> None:
        self.fault: Fault | None = None
        self._clock = clock
        self._total_bytes = total_bytes
        self._nodes: dict[str, _Node] = {}
        self._dirs: set[str] = {"", "/", "."}
        self._locked: set[str] = set()

    def now_ms(self) -> int:
        return self._clock.wall_ms() if self._clock else 0

    def check(self, operation: str, path: str, size: int = 0) -> int | None:
        return self.fault(operation, path, size) if self.fault else None

    def open(self, path: str, *, create: bool = False) -> File:
        self.check("open", path)
        node = self._nodes.get(path)
        if node is None:
            if not create or posixpath.dirname(path) not in self._dirs:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = self._nodes[path] = _Node(self.now_ms())
        return MemoryFile(self, path, node)

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"

    def exists(self, path: str) -> bool:
        return path in self._nodes or path in self._dirs

    def file_size(self, path: str) -> int:
        return len(self._node(path).data)

    def modified_ms(self, path: str) -> int:
        return self._node(path).modified_ms

    def set_modified_ms(self, path: str, ms: int) -> None:
        self.check("write", path)
        self._node(path).modified_ms = ms

    def list(self, path: str) -> list[str]:
        self.check("list", path)
        if path in self._nodes:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        prefix = path.rstrip("/") + "/" if path not in ("", ".") else ""
        names = (name[len(prefix) :] for name in [*self._nodes, *self._dirs] if name.startswith(prefix))
        return sorted({name.split("/", 1)[0] for name in names if name and name != "/"} - {"."})

    def make_dirs(self, path: str) -> None:
        self.check("make_dirs", path)
        while path and path not in self._dirs:
            self._dirs.add(path)
            path = posixpath.dirname(path)

    def rename(self, old: str, new: str) -> None:
        self.check("rename", old)
        if posixpath.dirname(new) not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", new)
        if old in self._dirs:
            self._rename_dir(old, new)
        else:
            node = self._node(old)
            del self._nodes[old]
            self._nodes[new] = node

    def _rename_dir(self, old: str, new: str) -> None:
        if self.list(new) if new in self._dirs else False:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", new)
        inside = old + "/"
        for path in [path for path in self._nodes if path.startswith(inside)]:
            self._nodes[new + path[len(old) :]] = self._nodes.pop(path)
        for path in [path for path in self._dirs if path == old or path.startswith(inside)]:
            self._dirs.discard(path)
            self._dirs.add(new + path[len(old) :])

    def remove(self, path: str) -> None:
        self.check("remove", path)
        self._node(path)
        del self._nodes[path]

    def remove_dir(self, path: str) -> None:
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self.remove_tree(path)

    def remove_tree(self, path: str) -> None:
        self.check("remove", path)
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        inside = path + "/"
        self._nodes = {name: node for name, node in self._nodes.items() if not name.startswith(inside)}
        self._dirs = {name for name in self._dirs if name != path and not name.startswith(inside)}

    def read(self, path: str) -> bytes:
        self.check("read", path)
        return bytes(self._node(path).data)

    def write(self, path: str, data: bytes) -> None:
        file = self.open(path, create=True)
        file.truncate(0)
        file.pwrite([data], 0)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self.check("write", path, len(data))
        if posixpath.dirname(path) not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        node = _Node(self.now_ms())
        node.data += data
        node.synced = len(data) if sync else 0
        self._nodes[path] = node

    def sync_dir(self, path: str) -> None:
        self.check("sync", path)
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    def sync_volume(self, path: str) -> None:
        self.check("sync", path)
        for node in self._nodes.values():
            node.synced = len(node.data)

    def lock(self, path: str) -> FileLock:
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path)
        self.open(path, create=True)
        self._locked.add(path)
        return MemoryFileLock(self._locked, path)

    def space(self, path: str) -> tuple[int, int]:
        used = sum(len(node.data) for node in self._nodes.values())
        return self._total_bytes, max(0, self._total_bytes - used)

    def volume(self, path: str) -> int:
        return 0

    def kill_holder(self) -> None:
        """What the end of the process does: its locks are free, its files stay as they are."""
        self._locked.clear()

    def lose_power(self, keep: Callable[[int, int], int] = lambda synced, size: synced) -> None:
        """What a power cut does: of each file, `keep(synced, size)` bytes stay; names stay; locks are free."""
        for node in self._nodes.values():
            del node.data[keep(node.synced, len(node.data)) :]
            node.synced = len(node.data)
        self._locked.clear()

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return node


class MemoryFileLock:
    """A lock of a `MemoryFileSystem`."""

    def __init__(self, locked: set[str], path: str) -> None:
        self._locked = locked
        self._path = path

    def release(self) -> None:
        self._locked.discard(self._path)
