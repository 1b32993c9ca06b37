"""What is asked for is not in memory, and who asks must not wait for the disk."""

from __future__ import annotations

from kwire.ports.files import File


class ColdRead(Exception):
    """Have what is `missing` read by a worker thread, then ask again."""

    def __init__(self, missing: Missing) -> None:
        super().__init__(missing.what)
        self.missing = missing
        """To be kept without the exception, which keeps the frames that it went through, and what they refer to: a
        cycle would have the file open, and its bytes taken on the disk, until the garbage collector comes."""


class Missing:
    """Bytes of a file."""

    def __init__(self, file: File, position: int, size: int) -> None:
        self.what = f"{file.path}: {size} bytes at {position}"
        self._file = file
        self._position = position
        self._size = size

    def warm(self) -> None:
        """Reads it. For a worker thread."""
        self._file.pread(self._size, self._position)

    @property
    def stale(self) -> bool:
        """Whether what was asked for is gone meanwhile, so that a failure means nothing."""
        return False

    def done(self) -> None:
        """What is to be done back on the event loop."""
