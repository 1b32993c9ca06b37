"""State that can go back, and that can be read as it was when last committed.

Every change of a `TimelineDict` belongs to a write, numbered by its `Timeline`. A write is committed, in order, when
its records are on all in-sync replicas; until then readers of committed state see what was before it, and when its
append fails it is reverted with all that came after it, newest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final = object()


class Timeline:
    """The writes that are not committed yet."""

    __slots__ = ("_changes", "_open", "_writes")

    def __init__(self) -> None:
        self._writes = 0
        self._open = False
        self._changes: deque[tuple[int, TimelineDict[Any, Any], Any]] = deque()

    def begin(self) -> int:
        """Starts a write: changes from now on belong to it, until `end`. Returns its number, greater than any before.

        Changes outside a write (while a log is being loaded) are committed at once.
        """
        self._writes += 1
        self._open = True
        return self._writes

    def end(self) -> None:
        """Ends the write begun last."""
        self._open = False

    def commit(self, number: int) -> None:
        """Commits the writes up to this one (inclusive)."""
        changes = self._changes
        while changes and changes[0][0] <= number:
            _, state, key = changes.popleft()
            state._committed(key)

    def revert(self, number: int) -> None:
        """Undoes the writes from this one (inclusive) on."""
        changes = self._changes
        while changes and changes[-1][0] >= number:
            _, state, key = changes.pop()
            state._reverted(key)

    def _note(self, state: TimelineDict[Any, Any], key: object) -> bool:
        if self._open:
            self._changes.append((self._writes, state, key))
        return self._open


class TimelineDict(Generic[K, V]):
    """A mapping on a timeline. Values must not be changed in place."""

    __slots__ = ("_before", "_current", "_timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._current: dict[K, V] = {}
        self._before: dict[K, deque[object]] = {}
        """By key with uncommitted changes: the value before each of them, the oldest first."""

    def __setitem__(self, key: K, value: V) -> None:
        if self._timeline._note(self, key):
            self._before.setdefault(key, deque()).append(self._current.get(key, _ABSENT))
        self._current[key] = value

    def __getitem__(self, key: K) -> V:
        return self._current[key]

    def __contains__(self, key: object) -> bool:
        return key in self._current

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[K]:
        return iter(self._current)

    def get(self, key: K) -> V | None:
        return self._current.get(key)

    def pop(self, key: K) -> V | None:
        """Removes the key and returns its value; None where it is not there."""
        if key not in self._current:
            return None
        if self._timeline._note(self, key):
            self._before.setdefault(key, deque()).append(self._current[key])
        return self._current.pop(key)

    def items(self) -> list[tuple[K, V]]:
        """A copy: the mapping may be changed meanwhile."""
        return list(self._current.items())

    def values(self) -> list[V]:
        """A copy, likewise."""
        return list(self._current.values())

    def committed(self, key: K) -> V | None:
        """The value as of the last commit; None where there was none."""
        before = self._before.get(key)
        if before is None:
            return self._current.get(key)
        return None if before[0] is _ABSENT else cast("V", before[0])

    def committed_items(self) -> list[tuple[K, V]]:
        """All keys and values as of the last commit."""
        if not self._before:
            return list(self._current.items())
        items = [(key, value) for key, value in self._current.items() if key not in self._before]
        items += [(key, cast("V", before[0])) for key, before in self._before.items() if before[0] is not _ABSENT]
        return items

    def _committed(self, key: K) -> None:
        before = self._before[key]
        before.popleft()
        if not before:
            del self._before[key]

    def _reverted(self, key: K) -> None:
        before = self._before[key]
        value = before.pop()
        if not before:
            del self._before[key]
        if value is _ABSENT:
            self._current.pop(key, None)
        else:
            self._current[key] = cast("V", value)
