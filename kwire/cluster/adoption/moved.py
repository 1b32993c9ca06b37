"""What a move leaves in each dir that it takes partitions from: where they went.

    <source>/kwire-import.moved
        {"orders-0": "/a", "orders-1": "/b"}

It is there before the first of them goes, and stays: without it another import would take what is gone for partitions
that were never written to. Of a partition whose folder is there it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.source import SourceDir
from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition


class Moved(NamedTuple):
    """Where a partition went, and the file that says so."""

    target: str
    said_by: str


def note_moves(files: FileSystem, source: SourceDir, targets: Mapping[TopicPartition, str]) -> None:
    """Says of partitions that they go from the source to these targets; what is said of others that went stays."""
    went = {key: moved.target for key, moved in moved_from(files, [source]).items()}
    said = {layout.partition_dir_name(*key): target for key, target in {**went, **targets}.items()}
    files.write_atomically(_path(source), json.dumps(said).encode())


def moved_from(files: FileSystem, sources: Iterable[SourceDir]) -> dict[TopicPartition, Moved]:
    """What is said of partitions that are not back. Raises AdoptionError where a file is damaged."""
    found = {}
    for source in sources:
        path = _path(source)
        if files.exists(path):
            for name, target in _read(files, path).items():
                parsed = layout.parse_partition_dir(name)
                if parsed is not None and parsed[:2] not in source.partitions:
                    found[parsed.topic, parsed.partition] = Moved(target, path)
    return found


def _path(source: SourceDir) -> str:
    return f"{source.path}/{layout.MOVED_BY_IMPORT}"


def _read(files: FileSystem, path: str) -> dict[str, str]:
    try:
        said = json.loads(files.read(path))
    except ValueError:
        said = None
    if not isinstance(said, dict) or not all(isinstance(target, str) for target in said.values()):
        raise AdoptionError(
            f"{path} is damaged: it should tell where an import moved the partitions that are not here any more; "
            "look where they are, and remove it"
        )
    return said
