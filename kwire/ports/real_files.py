"""Files on a real disk.

A `PosixFile`'s descriptor lives as long as anything refers to the object: a `FileSlice` that waits to be sent keeps it
open although the segment was deleted, renamed or dropped from the cache of open files meanwhile. Whoever is done with
a file that others may still be sending therefore just forgets it; `close()` is for those who know they are alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from kwire.ports.files import Buffer, File, FileLock
from kwire.ports.read_ahead import ReadAhead

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MAX_BUFFERS = 1024
"""IOV_MAX: what one gathered write may take."""

_RESIDENCY_STEP = 128 * 1024
"""One page in so many bytes is asked for: what is sent is loaded and evicted in runs, and a probe costs about 1 µs.

Where a disk answers every probe of a cold range, the range is taken to be in memory: such a disk will not be waited for
long."""

_LOOKED_AT_WHOLE = 16 * 1024
"""Up to so much is copied about as fast as two probes are made."""

_ASKED_AT_ONCE = 128 * 1024
"""The kernel begins to read so many bytes of one request (what `read_ahead_kb` is unless it was changed), and may leave
out the rest without a word."""

_SMALL_FILE = 4096
"""A file with less than this is read by one system call: so are most of the small ones beside the logs."""

_SET_FILE_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_WRITE_LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
"""A struct flock: all of the file."""

_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_PROBE = [bytearray(1)]
_LOADED = memoryview(bytearray(128 * 1024))
"""Where what is loaded or looked at goes, for nobody to read: several threads may write there at once."""

_READING_AHEAD = 4
"""Threads, of all files together."""
_OPENING = Lock()

_HAS_ADVICE = hasattr(os, "posix_fadvise")
_RANDOM: int = getattr(os, "POSIX_FADV_RANDOM", 0)
_WILL_NEED: int = getattr(os, "POSIX_FADV_WILLNEED", 0)
_SEQUENTIAL: int = getattr(os, "POSIX_FADV_SEQUENTIAL", 0)


_WRITE = 2
"""SYNC_FILE_RANGE_WRITE"""


@cache
def _threads() -> ThreadPoolExecutor:
    """Nobody waits for what they do."""
    from concurrent.futures import ThreadPoolExecutor  # not needed before somebody reads what is cold

    return ThreadPoolExecutor(_READING_AHEAD, "kwire read ahead")


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Linux's system call, which `os` lacks. With _WRITE it waits for nothing that is written, and takes no error from
    who syncs the file."""
    import ctypes  # slow to import, and not needed before much was appended

    call = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if call is not None:
        call.argtypes = ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint
    return call


class PosixFile:
    """An open file and its descriptor."""

    __slots__ = ("__weakref__", "_ahead", "_descriptor", "_front_to_back", "_sent", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._sent = False
        """Whether it was asked about for sending: from then on the system itself reads nothing ahead."""
        self._ahead: ReadAhead | None = None
        self._front_to_back = -1
        """Another descriptor of the file, for who goes through it from front to back; opened when there is one."""

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing:  # one read gives at most 2 GiB; otherwise this is the end of the file
            data = os.pread(self._descriptor, missing, position + size - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> int:
        if len(buffers) > _MAX_BUFFERS:
            return sum(
                self.pwrite(buffers[i : i + _MAX_BUFFERS], position + sum(map(len, buffers[:i])))
                for i in range(0, len(buffers), _MAX_BUFFERS)
            )
        size = 0
        for buffer in buffers:
            size += len(buffer)
        written = os.pwritev(self._descriptor, buffers, position)
        while written < size:  # a nearly full disk takes a part; the next call says why
            rest = memoryview(b"".join(buffers))[written:]
            written += os.pwritev(self._descriptor, [rest], position + written)
        return size

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        if hasattr(os, "fdatasync"):
            os.fdatasync(self._descriptor)
        else:
            os.fsync(self._descriptor)

    def begin_writing(self, position: int, size: int) -> None:
        call = _sync_file_range()
        if call is not None:  # what it can't begin the system writes in its own time
            call(self._descriptor, position, size, _WRITE)

    def resident(self, position: int, size: int) -> bool:
        if size <= 0:
            return True
        if _NOWAIT is None:
            return False
        if not self._sent:
            self._expect_sending()
        try:
            if size <= _LOOKED_AT_WHOLE:
                # A probe has the system read the page it finds cold. A fast disk answers within the probe, which then
                # says nothing of the pages beside it.
                while size > 0 and (found := os.preadv(self._descriptor, [_LOADED[:size]], position, _NOWAIT)):
                    position += found
                    size -= found
                return True
            for probe in range(position, position + size - 1, _RESIDENCY_STEP):
                os.preadv(self._descriptor, _PROBE, probe, _NOWAIT)
            os.preadv(self._descriptor, _PROBE, position + size - 1, _NOWAIT)
        except OSError:  # EAGAIN: cold; EOPNOTSUPP: this file system cannot tell
            return False
        return True

    def read_resident(self, size: int, position: int) -> Buffer | None:
        if _NOWAIT is None:
            return None
        if not self._sent:
            self._expect_sending()
        data = bytearray(size)
        try:
            return data if os.preadv(self._descriptor, [data], position, _NOWAIT) == size else None
        except OSError:  # as in `resident`
            return None

    def _expect_sending(self) -> None:
        """Before anything is read: even a probe would let the system read ahead."""
        self._sent = True
        self._advise(0, 0, _RANDOM)

    def is_loading_due(self, position: int, size: int) -> bool:
        ahead = self._ahead
        if not self.resident(position, size):
            return True
        if ahead is not None and ahead.is_due(position, size):
            _threads().submit(self._read_ahead, *ahead.next(position, size))
        return False

    def load(self, position: int, size: int) -> None:
        if not self._sent:
            self._expect_sending()
        ahead, end = self._ahead, position + size
        if ahead is None:
            ahead = self._ahead = ReadAhead()
        start, upto = ahead.next(position, size)
        if upto > end and self._open_front_to_back():
            self._read(self._front_to_back, position, end)
            if start < upto:  # else enough of it was asked for, and it is slower than who reads
                _threads().submit(self._read_ahead, start, upto)
        else:
            self._load_alone(position, end)

    def _load_alone(self, position: int, end: int) -> None:
        """Has the system read no more than this."""
        for start in range(position, end, _ASKED_AT_ONCE):
            self._advise(start, min(_ASKED_AT_ONCE, end - start), _WILL_NEED)
        self._read(self._descriptor, position, end)

    def _read_ahead(self, start: int, upto: int) -> None:
        """Reads what comes next in a stream, up to the end of the file. For a thread that nobody waits for."""
        with suppress(OSError):  # it was closed; or who comes to it will be told
            file_end = self.size()
            if self._ahead is not None and (upto >= file_end or self.resident(start, upto - start)):
                self._ahead.finish(upto)
            if self._open_front_to_back():
                self._read(self._front_to_back, start, min(upto, file_end))

    def _open_front_to_back(self) -> bool:
        """Whether there is a descriptor by which the system itself reads ahead: it takes larger pieces of memory for
        that than where it is asked to, and half of the time."""
        if self._front_to_back < 0:
            try:
                opened = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # not Linux, or no descriptor is left
                return False
            with _OPENING:
                if self._front_to_back < 0:
                    self._front_to_back, opened = opened, -1
            if opened >= 0:
                os.close(opened)
            elif _HAS_ADVICE:
                with suppress(OSError):
                    os.posix_fadvise(self._front_to_back, 0, 0, _SEQUENTIAL)
        return True

    def _read(self, descriptor: int, position: int, end: int) -> None:
        while position < end:
            read = os.preadv(descriptor, [_LOADED[: end - position]], position)
            if not read:
                return  # it was cut off
            position += read

    def _advise(self, position: int, size: int, advice: int) -> None:
        if _HAS_ADVICE:
            with suppress(OSError):  # it is advice: some file systems and sandboxes know none
                os.posix_fadvise(self._descriptor, position, size, advice)

    def fileno(self) -> int | None:
        return self._descriptor

    def close(self) -> None:
        descriptors = self._descriptor, self._front_to_back
        self._descriptor = self._front_to_back = -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class PosixFileSystem:
    """The operating system's files."""

    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return PosixFile(path, os.open(path, flags, 0o644))

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, ms: int) -> None:
        os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a third of the time of open(): there are thousands
        try:
            data = os.read(descriptor, _SMALL_FILE)
            if len(data) < _SMALL_FILE:
                return data
            parts = [data]
            while part := os.read(descriptor, 1 << 20):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def write(self, path: str, data: bytes) -> None:
        self._write(path, data, sync=False)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        try:
            self._write(temporary, data, sync=sync)
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):  # on a full volume half a file is in everybody's way
                os.unlink(temporary)
            raise
        if sync:
            self.sync_dir(os.path.dirname(path) or ".")

    def _write(self, path: str, data: bytes, *, sync: bool) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_volume(self, path: str) -> None:
        import ctypes  # not needed before the end of a broker, and slow to import

        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:  # Linux alone can sync a single volume
            os.sync()
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if syncfs(descriptor) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> FileLock:
        return PosixFileLock(path)

    def space(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def volume(self, path: str) -> int:
        return os.stat(path).st_dev


class PosixFileLock:
    """An exclusive lock, held until released or until the process ends. It keeps out a Java broker too.

    On Linux it is a lock of the open file. A plain record lock, which is what Java takes and which conflicts with it,
    would be lost by any other attempt in this process: closing one descriptor of a file drops all of its record locks.
    Elsewhere there are two kinds at once: flock for other holders in this process, the record lock for Java.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if _SET_FILE_LOCK is not None:
                fcntl.fcntl(self._descriptor, _SET_FILE_LOCK, _WRITE_LOCK)
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            self.release()
            raise BlockingIOError(error.errno, "locked by another process", path) from error
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def in_use(path: str) -> bool:
    """Whether some process holds a lock on the file, as a broker does on `.lock`. Takes none itself.

    Elsewhere than on Linux it is not found out.
    """
    if _SET_FILE_LOCK is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return fcntl.fcntl(descriptor, fcntl.F_GETLK, _WRITE_LOCK)[:2] != struct.pack("h", fcntl.F_UNLCK)
    finally:
        os.close(descriptor)
