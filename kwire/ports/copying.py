"""Files from one folder to another: by copy, which shares the blocks where the file system can, or by a second name."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

_PIECE = 16 * 1024 * 1024
_CANNOT = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}
"""What says that the system cannot copy between two files itself."""


def copy_file(source: str, target: str, advance: Callable[[int], None]) -> None:
    """Makes `target` a copy with the same time of modification; `advance` is told the bytes done. Does not sync.

    Raises OSError.
    """
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            copy = _copy_range
            while True:
                try:
                    done = copy(reading, writing)
                except OSError as error:
                    if copy is _read_and_write or error.errno not in _CANNOT:
                        raise
                    copy = _read_and_write
                    continue
                if not done:
                    break
                advance(done)
            times = os.fstat(reading)
            os.utime(writing, ns=(times.st_atime_ns, times.st_mtime_ns))
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def link_file(source: str, target: str) -> None:
    """Gives the file a second name. Raises OSError, as where that is on another volume."""
    os.link(source, target)


def nearest_folder(path: str) -> str:
    """The folder itself, or the nearest above that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def same_volume(one: str, other: str) -> bool:
    """Whether two folders lie on one volume, so that files can be renamed and linked from one to the other."""
    return os.stat(one).st_dev == os.stat(other).st_dev


def _copy_range(reading: int, writing: int) -> int:
    if not hasattr(os, "copy_file_range"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.copy_file_range(reading, writing, _PIECE)


def _read_and_write(reading: int, writing: int) -> int:
    data = os.read(reading, _PIECE)
    written = 0
    while written < len(data):
        written += os.write(writing, memoryview(data)[written:])
    return len(data)
