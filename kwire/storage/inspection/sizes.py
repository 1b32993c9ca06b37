"""How much the partitions of log dirs take, by the sizes of their files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from kwire.ports.files import FileSystem
from kwire.storage import layout

LOCAL = "local"
"""The tier of what lies in log dirs."""


class PartitionSize(NamedTuple):
    """One partition in one log dir. Sizes are bytes."""

    topic: str
    partition: int
    tier: str
    log_dir: str
    segments: int
    log_bytes: int
    other_bytes: int
    """Of indexes, snapshots, and whatever else lies in the folder."""


def partition_sizes(files: FileSystem, log_dir: str) -> Iterator[PartitionSize]:
    """The live partitions of a log dir; of a partition's folder, that one. Files that go meanwhile do not count."""
    parsed = layout.parse_partition_dir(log_dir.rpartition("/")[2])
    if parsed is not None and any(name.endswith(layout.LOG) for name in files.list(log_dir)):
        yield _size(files, log_dir.rpartition("/")[0], parsed, log_dir)
        return
    for name in files.list(log_dir):
        parsed = layout.parse_partition_dir(name)
        if parsed is not None and not parsed.suffix:
            with suppress(FileNotFoundError, NotADirectoryError):  # deleted meanwhile; a file of that name
                yield _size(files, log_dir, parsed, f"{log_dir}/{name}")


def _size(files: FileSystem, log_dir: str, parsed: layout.PartitionDir, folder: str) -> PartitionSize:
    segments = log_bytes = other_bytes = 0
    for name in files.list(folder):
        try:
            size = files.file_size(f"{folder}/{name}")
        except FileNotFoundError:
            continue
        if name.endswith(layout.LOG):
            segments += 1
            log_bytes += size
        else:
            other_bytes += size
    return PartitionSize(parsed.topic, parsed.partition, LOCAL, log_dir, segments, log_bytes, other_bytes)
