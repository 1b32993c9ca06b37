"""Reading the parts of an object to be, a bounded piece at a time."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from kwire.ports.files import FileSlice
from kwire.remote.object_store import Part


def total(parts: Sequence[Part]) -> int:
    """Bytes of all parts."""
    return sum(map(len, parts))


def pieces(parts: Sequence[Part], piece_bytes: int) -> Iterator[bytes | memoryview]:
    """The bytes of all parts in order, each piece at most `piece_bytes` long and none of them empty.

    Reads files, for a worker thread. OSError where one cannot be read or ends before its slice does.
    """
    for part in parts:
        for start in range(0, len(part), piece_bytes):
            size = min(piece_bytes, len(part) - start)
            if isinstance(part, FileSlice):
                yield _read(part, start, size)
            else:
                yield memoryview(part)[start : start + size]


def _read(part: FileSlice, start: int, size: int) -> bytes:
    data = part.file.pread(size, part.position + start)
    if len(data) < size:
        end = part.position + part.size
        raise OSError(errno.EIO, f"the file ends before byte {end}, up to which it was to be copied", part.file.path)
    return data
