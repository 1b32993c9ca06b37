"""Files: the only place that opens one.

A `FileSystem` hands out `File`s, which are read and written at positions (there is no cursor). `FileSlice` names a
range of a file, so that a fetch response can carry bytes that were never read into this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """An open file, to which there may be weak references. Offsets and sizes are bytes. Methods may raise OSError."""

    path: str

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        """Writes all buffers one after the other from `position` (one gathered write); returns the bytes written.

        All is written or OSError is raised; what a failed write left behind the old end is the caller's to truncate.
        """

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """fdatasync: blocks; for a worker thread."""

    def begin_writing(self, position: int, size: int) -> None:
        """Has the system begin to bring the range to the disk, where it can be had to. May block; for a worker thread.

        Nothing is on the disk for that, nor does a failure show: `sync` says it."""

    def resident(self, position: int, size: int) -> bool:
        """Whether reading the range would not wait for the disk: it is in the page cache, as far as is cheap to say.

        True too where the system cannot tell a cached range from a cold one but reading cannot block (memory);
        False where it cannot tell and reading might.
        """

    def read_resident(self, size: int, position: int) -> Buffer | None:
        """As `pread`, if that does not wait for the disk; None if it would, or if the file ends before."""

    def is_loading_due(self, position: int, size: int) -> bool:
        """Whether `load` is to be called before the range is sent, which is cold.

        Where it is not, and who reads from front to back will come to what follows soon, the system is had to begin
        with that."""

    def load(self, position: int, size: int) -> None:
        """Brings the range into memory, and has others begin with what comes next where the file is read from front to
        back. Blocks; for a worker thread."""

    def fileno(self) -> int | None:
        """The descriptor for os.sendfile; None where there is none (memory)."""

    def close(self) -> None: ...


class FileSystem(Protocol):
    """Named files in folders. Paths are strings with '/'."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Opens for reading and writing. FileNotFoundError unless `create`."""

    def absolute(self, path: str) -> str:
        """The path from the root, as an administrator would name it."""

    def exists(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, ms: int) -> None: ...

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""

    def make_dirs(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces a file that is in the way."""

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """An empty folder; OSError where there is something in it."""

    def remove_tree(self, path: str) -> None: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None:
        """Makes `data` the content of the file (created if missing). Waits for no disk; a crash may leave any part."""

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Replaces the file's content so that a crash leaves the old or the new (`.tmp`, fsync, rename, fsync).

        Without `sync` nothing waits for the disk, and only the end of the process leaves the old or the new.
        """

    def sync_dir(self, path: str) -> None: ...

    def sync_volume(self, path: str) -> None:
        """Brings everything written so far to the volume that holds `path` onto the disk: blocks; for a worker thread.

        Once for thousands of files instead of an fsync for each.
        """

    def lock(self, path: str) -> FileLock:
        """An exclusive lock on a file (created if missing); BlockingIOError if another process (or holder) has it."""

    def space(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds `path`."""

    def volume(self, path: str) -> int:
        """The number of the volume that holds `path`, which must exist: that of no other volume."""


class FileLock(Protocol):
    def release(self) -> None: ...


SMALL_SLICE_BYTES = 32 * 1024
"""A slice up to this size is better read than sent as it is: sendfile's own call costs more than the copy."""


class FileSlice:
    """`size` bytes of `file` from `position`: a part of a response that is sent without being read here.

    Not to be changed. (Of what a dataclass writes for itself nothing is compiled.)
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileSlice):
            return NotImplemented
        return (self.file, self.position, self.size) == (other.file, other.position, other.size)

    def __repr__(self) -> str:
        return f"FileSlice({self.file!r}, {self.position}, {self.size})"

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        return self.file.pread(self.size, self.position)
