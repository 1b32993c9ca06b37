"""The mark of an unfinished import: what an import says in each dir that it fills, so that another run can go on.

    <target>/kwire-import.unfinished
        {"mode": "copy", "sources": ["/var/lib/kafka"], "targets": ["/a", "/b"], "number": 0,
         "partitions": [["orders-0"], ["orders-1"]], "left": []}

`partitions` has for each target the folders that come there, `number` says which target this one is. The marks go one
after the other, and a target whose mark has gone already looks like any data dir of kwire. So before the first one
goes, that of the first target, which goes last, gets a fingerprint of each target as it was left: by that, and by
nothing else, such a target is known again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.stores.journal import CLEAN, JOURNAL
from kwire.ports.files import FileSystem
from kwire.storage import layout

_HALF_WRITTEN = ".tmp"
OF_NOBODY = {layout.LOCK, "lost+found", layout.UNFINISHED_IMPORT, layout.UNFINISHED_IMPORT + _HALF_WRITTEN}
"""What may be in a dir before an import begins."""
_WRITTEN = {*layout.OFFSET_CHECKPOINTS, layout.META_PROPERTIES, layout.CLEAN_SHUTDOWN, JOURNAL, CLEAN}
_OF_IMPORT = _WRITTEN | {name + _HALF_WRITTEN for name in _WRITTEN}


class Mode(StrEnum):
    """How the data come over."""

    COPY = "copy"
    LINK = "link"
    """Sealed segments get a second name, the rest is copied."""
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Mark:
    """What an import says of itself."""

    mode: Mode
    sources: list[str]
    targets: list[str]
    partitions: list[list[str]]
    number: int
    left: list[str] = field(default_factory=list)

    def owns(self, name: str) -> bool:
        """Whether what has this name in the target is of this import."""
        return name in _OF_IMPORT or name in self.partitions[self.number]


def write_mark(files: FileSystem, target: str, mark: Mark) -> None:
    files.write_atomically(f"{target}/{layout.UNFINISHED_IMPORT}", json.dumps(asdict(mark)).encode())


def read_mark(files: FileSystem, target: str) -> Mark | None:
    """None where there is none. Raises AdoptionError where it is damaged."""
    path = f"{target}/{layout.UNFINISHED_IMPORT}"
    if not files.exists(path):
        return None
    try:
        return _checked(json.loads(files.read(path)))
    except (ValueError, TypeError, KeyError) as error:
        raise AdoptionError(
            f"{path} is damaged: it should tell what of {target} may be removed; choose another data dir, or look "
            f"what that one holds and empty it ({type(error).__name__}: {error})"
        ) from None


def names_in(files: FileSystem, target: str) -> list[str]:
    """What stands in the way of an import there."""
    return [name for name in files.list(target) if name not in OF_NOBODY] if files.exists(target) else []


def fingerprint(files: FileSystem, target: str) -> str:
    """Of the small files' contents, and of the names, sizes and times of modification in partitions' folders."""
    digest = sha256()
    for name in names_in(files, target):
        if layout.parse_partition_dir(name) is None:
            digest.update(json.dumps([name, sha256(files.read(f"{target}/{name}")).hexdigest()]).encode())
            continue
        folder = f"{target}/{name}"
        for each in files.list(folder):
            path = f"{folder}/{each}"
            digest.update(json.dumps([name, each, files.file_size(path), files.modified_ms(path)]).encode())
    return digest.hexdigest()


def mark_that_went(files: FileSystem, target: str, marks: Iterable[Mark]) -> Mark | None:
    """The mark that the target had, where it is exactly as the import of one of `marks` left it."""
    names = names_in(files, target)
    for mark in marks:
        for number in range(len(mark.left)):
            own = Mark(mark.mode, mark.sources, mark.targets, mark.partitions, number)
            if all(map(own.owns, names)) and fingerprint(files, target) == mark.left[number]:
                return own
    return None


def _checked(values: dict[str, object]) -> Mark:
    """Raises ValueError, TypeError or KeyError."""
    sources, targets, left = (_texts(values[name]) for name in ("sources", "targets", "left"))
    partitions, number = values["partitions"], values["number"]
    if not isinstance(partitions, list) or not isinstance(number, int):
        raise TypeError("another form")
    if not 0 <= number < len(targets) == len(partitions):
        raise ValueError("a target that is none")
    return Mark(Mode(str(values["mode"])), sources, targets, [_texts(each) for each in partitions], number, left)


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError("another form")
    return value
