"""Memory that the system clears page by page as it is written, and that takes no more than what was written."""

from __future__ import annotations

from mmap import mmap


def zeros(size: int) -> mmap:
    """So many bytes, and one at least. Raises MemoryError."""
    try:
        return mmap(-1, max(1, size))
    except OSError as error:
        raise MemoryError(f"no {size} bytes for a map of offsets: {error}") from error
