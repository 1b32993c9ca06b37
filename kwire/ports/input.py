"""Files that are only read, from their beginning to their end: what a user names, pipes among it."""

from __future__ import annotations

from io import FileIO


def open_input(path: str) -> FileIO:
    """Unbuffered, so that a pipe gives what is there. Its `read` blocks. Raises OSError, which names the path."""
    return FileIO(path, "rb")
