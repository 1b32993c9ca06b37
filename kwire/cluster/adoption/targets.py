"""The data dirs that an import fills: new or empty ones, or what an interrupted import left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from kwire.cluster.adoption import AdoptionError
from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition

OF_NOBODY = {layout.LOCK, "lost+found", layout.UNFINISHED_IMPORT}
"""What may be in a dir before an import begins."""


class Mode(Enum):
    """How the data come over."""

    COPY = "copy"
    LINK = "link"
    """Sealed segments get a second name, the rest is copied."""
    MOVE = "move"


@dataclass(slots=True)
class Before:
    """What an interrupted import left."""

    unfinished: set[str] = field(default_factory=set)
    """Targets that it had begun with: what is in them may go, but for what was moved."""
    moved: dict[TopicPartition, int] = field(default_factory=dict)
    """Partitions that a move has brought over, by the number of their target."""


def unfinished_text(mode: Mode, sources: Sequence[str], targets: Sequence[str]) -> bytes:
    """The content of the mark of an unfinished import."""
    return json.dumps({"mode": mode.value, "sources": list(sources), "targets": list(targets)}).encode()


def look_at_targets(files: FileSystem, targets: Sequence[str], sources: Sequence[str], mode: Mode) -> Before:
    """Raises AdoptionError where a target is not empty, or holds a part of something else that was moved there."""
    before = Before()
    moving = False
    for number, target in enumerate(targets):
        names = files.list(target) if files.exists(target) else []
        if layout.UNFINISHED_IMPORT in names:
            mark = json.loads(files.read(f"{target}/{layout.UNFINISHED_IMPORT}"))
            before.unfinished.update(mark["targets"])  # the mark of the first one is the last to go
            moving = Mode(mark["mode"]) is Mode.MOVE
            if moving and mark != json.loads(unfinished_text(mode, sources, targets)):
                raise AdoptionError(
                    f"{target} holds a part of {' '.join(mark['sources'])} that was moved there: run that again"
                )
        elif set(names) - OF_NOBODY and target not in before.unfinished:
            raise AdoptionError(f"{target} is not empty: an import needs a data dir of its own (--data-dir)")
        if moving and target in before.unfinished:
            for name in names:
                parsed = layout.parse_partition_dir(name)
                if parsed is not None:
                    before.moved[parsed.topic, parsed.partition] = number
    return before
