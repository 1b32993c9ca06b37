"""Which files of a partition's folder come over."""

from __future__ import annotations

from typing import NamedTuple

from kwire.cluster.adoption.source import SourceDir
from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.protocol.records.header import MAGIC
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition

_UP_TO_MAGIC = 17
"""Bytes, in every format."""


class CarriedFile(NamedTuple):
    name: str
    size: int
    sealed: bool
    """A segment that nobody writes to any more."""


def carried_files(files: FileSystem, source: SourceDir, key: TopicPartition) -> list[CarriedFile]:
    """All but those that wait for their removal, and those that recovery builds anew: after a crash the indexes of the
    segments that may not have been flushed, which Apache Kafka makes 10 MiB long in advance.
    """
    folder = source.folder(key)
    names = files.list(folder)
    recovered = _recovered_from(names, source, key)
    found = []
    for name in names:
        parsed = layout.parse_segment_name(name)
        if name.endswith(layout.DELETED):
            continue
        if parsed is not None and parsed[1] in layout.INDEX_SUFFIXES and parsed[0] >= recovered:
            continue
        sealed = parsed is not None and parsed[1] == layout.LOG and parsed[0] < recovered
        sealed = sealed and parsed is not None and parsed[0] < _last(names)
        found.append(CarriedFile(name, files.file_size(f"{folder}/{name}"), sealed))
    return found


def old_format(files: FileSystem, source: SourceDir, key: TopicPartition) -> int | None:
    """The message format of a segment that begins with records from before Kafka 0.11 (0 or 1), which kwire does not
    read and Apache Kafka 4 does; None where none does.
    """
    folder = source.folder(key)
    for name in files.list(folder):
        if name.endswith(layout.LOG):
            with open_input(f"{folder}/{name}") as file:
                head = file.read(_UP_TO_MAGIC)
            if len(head) == _UP_TO_MAGIC and any(head) and head[-1] < MAGIC:
                return head[-1]
    return None


def _recovered_from(names: list[str], source: SourceDir, key: TopicPartition) -> int:
    """The base offset of the first segment that recovery goes through; above all where there is none."""
    if source.clean:
        return 1 << 63
    point = source.offset(layout.RECOVERY_POINTS, key) or 0
    return max((base for base in _bases(names) if base <= point), default=0)


def _last(names: list[str]) -> int:
    return max(_bases(names), default=0)


def _bases(names: list[str]) -> list[int]:
    parsed = map(layout.parse_segment_name, names)
    return [each[0] for each in parsed if each is not None and each[1] == layout.LOG]
