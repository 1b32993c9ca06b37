"""The names of files and folders: as processes see them, as they are on the disk, and the changes in between."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from kwire.ports.simulated_disk.content import Content
from kwire.ports.simulated_disk.order import Order


class _Change(NamedTuple):
    moment: int
    path: str
    content: Content | None = None
    """Of a new file."""
    new_path: str | None = None
    """Of a rename."""
    folder: bool = False
    """Whether it is about a folder."""
    gone: bool = False
    """Of a removal."""

    def names(self) -> tuple[str, ...]:
        return (self.path,) if self.new_path is None else (self.path, self.new_path)


class Tree:
    """Paths, and what they lead to."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self.folders: set[str] = {"", "/", "."}

    def copy(self) -> Tree:
        tree = Tree()
        tree.files, tree.folders = self.files.copy(), self.folders.copy()
        return tree

    def apply(self, change: _Change) -> None:
        path, new_path = change.path, change.new_path
        if new_path is not None:
            self._rename(path, new_path)
        elif change.gone:
            self.files.pop(path, None)
            self.folders.discard(path)
        elif change.folder:
            self.folders.add(path)
        elif change.content is not None:
            self.files[path] = change.content

    def _rename(self, old: str, new: str) -> None:
        inside = old + "/"
        for path in [path for path in self.files if path == old or path.startswith(inside)]:
            self.files[new + path[len(old) :]] = self.files.pop(path)
        for path in [path for path in self.folders if path == old or path.startswith(inside)]:
            self.folders.discard(path)
            self.folders.add(new + path[len(old) :])

    def prune(self) -> None:
        """Drops what lies in folders that are not there."""
        for path in sorted(self.folders - {"", "/", "."}):
            if posixpath.dirname(path) not in self.folders:
                self.folders.discard(path)
        self.files = {path: file for path, file in self.files.items() if posixpath.dirname(path) in self.folders}


class Names:
    """The tree that processes see, and the one on the disk."""

    def __init__(self) -> None:
        self.tree = Tree()
        self._on_disk = Tree()
        self._changes: list[_Change] = []

    def create(self, moment: int, path: str, content: Content) -> None:
        self._change(_Change(moment, path, content=content))

    def make_folder(self, moment: int, path: str) -> None:
        self._change(_Change(moment, path, folder=True))

    def rename(self, moment: int, old: str, new: str) -> None:
        self._change(_Change(moment, old, new_path=new))

    def remove(self, moment: int, path: str) -> None:
        self._change(_Change(moment, path, gone=True))

    def _change(self, change: _Change) -> None:
        self.tree.apply(change)
        self._changes.append(change)

    def sync(self) -> None:
        """Everything is on the disk."""
        self._on_disk = self.tree.copy()
        self._changes.clear()

    def sync_folder(self, path: str) -> None:
        """The names in a folder are on the disk, with what they build on."""
        wanted: set[_Change] = set()
        needed: list[str] = []
        for change in reversed(self._changes):
            names = change.names()
            if any(posixpath.dirname(name) == path for name in names) or any(_lies_in(names, name) for name in needed):
                wanted.add(change)
                needed += names
        self._keep(change in wanted for change in self._changes)
        self._changes = [change for change in self._changes if change not in wanted]

    def lose(self, order: Order, draw: Random, journal_end: int) -> None:
        """The power was cut: the tree is what was on the disk, with as much of the rest as chance has it."""
        if order is Order.JOURNAL:
            self._keep(change.moment < journal_end for change in self._changes)
        else:
            self._keep(self._any_that_stand(draw))
        self._on_disk.prune()
        self.tree = self._on_disk.copy()
        self._changes.clear()

    def _any_that_stand(self, draw: Random) -> Iterable[bool]:
        """Each by chance, but none that builds on one that is lost."""
        rate = draw.choice((0.0, 0.5, 0.9, 1.0))
        lost: list[str] = []
        for change in self._changes:
            stands = not _meet(change.names(), lost) and draw.random() < rate
            if not stands:
                lost += change.names()
            yield stands

    def _keep(self, choice: Iterable[bool]) -> None:
        for change, kept in zip(self._changes, choice, strict=True):
            if kept:
                self._on_disk.apply(change)


def _lies_in(names: Iterable[str], other: str) -> bool:
    """Whether one of the names is `other` or lies in it."""
    return any(name == other or name.startswith(other + "/") for name in names)


def _meet(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether one of the names is, contains or lies in one of the others."""
    return any(_lies_in(names, other) or any(other.startswith(name + "/") for name in names) for other in others)
