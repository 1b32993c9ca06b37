"""The data dirs that an import fills: new or empty ones, or what an interrupted import left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.marks import Mark, Mode, mark_that_went, names_in, read_mark
from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition


@dataclass(slots=True)
class Before:
    """What an interrupted import left."""

    unfinished: dict[str, Mark] = field(default_factory=dict)
    """Targets that it had begun with: what is in them is its own, and may go, but for what was moved."""
    moved: dict[TopicPartition, int] = field(default_factory=dict)
    """Partitions that a move has brought over, by the number of their target."""
    moving: dict[TopicPartition, str] = field(default_factory=dict)
    """All partitions of that move, by their target."""

    def may_go(self, files: FileSystem, target: str) -> list[str]:
        """The names in the target that are to be removed before an import begins anew."""
        return [name for name in names_in(files, target) if _partition(name) not in self.moved]


def look_at_targets(files: FileSystem, targets: Sequence[str], sources: Sequence[str], mode: Mode) -> Before:
    """Raises AdoptionError where a target is not empty, or holds a part of something else that was moved there."""
    marks = {target: mark for target in targets if (mark := read_mark(files, target)) is not None}
    before = Before()
    for number, target in enumerate(targets):
        names = names_in(files, target)
        mark = marks.get(target)
        if mark is None and names:
            mark = mark_that_went(files, target, marks.values())
            if mark is None:
                raise AdoptionError(f"{target} is not empty: an import needs a data dir of its own (--data-dir)")
        if mark is None:
            continue
        for name in names:
            if not mark.owns(name):
                raise AdoptionError(
                    f"{target}/{name} is not of the import that was interrupted there: "
                    f"move it elsewhere, so that what is in {target} can be removed"
                )
        before.unfinished[target] = mark
        if mark.mode is Mode.MOVE:
            _go_on(before, mark, (mode, list(sources), list(targets)), number, names)
    return before


def _go_on(before: Before, mark: Mark, same: tuple[Mode, list[str], list[str]], number: int, names: list[str]) -> None:
    """Counts in what a move has brought into a target."""
    if (mark.mode, mark.sources, mark.targets) != same:
        raise AdoptionError(
            f"{same[2][number]} holds a part of {' '.join(mark.sources)} that was moved there: run that again"
        )
    for target, folders in zip(mark.targets, mark.partitions, strict=True):
        before.moving |= {key: target for name in folders if (key := _partition(name)) is not None}
    for name in names:
        key = _partition(name)
        if key is not None:
            before.moved[key] = number


def _partition(name: str) -> TopicPartition | None:
    parsed = layout.parse_partition_dir(name)
    return None if parsed is None else (parsed.topic, parsed.partition)
