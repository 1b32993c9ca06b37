"""How often something is the case, on a timeline."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from kwire.coordinator.runtime.timeline import Timeline, TimelineDict

K = TypeVar("K", bound=Hashable)


class Counts(Generic[K]):
    """A number above zero for each key that has one."""

    __slots__ = ("_numbers",)

    def __init__(self, timeline: Timeline) -> None:
        self._numbers: TimelineDict[K, int] = TimelineDict(timeline)

    def __getitem__(self, key: K) -> int:
        return self._numbers.get(key) or 0

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def keys(self) -> list[K]:
        return list(self._numbers)

    def items(self) -> list[tuple[K, int]]:
        return self._numbers.items()

    def move(self, old: Iterable[K], new: Iterable[K]) -> None:
        """One less of each in `old`, one more of each in `new`."""
        change: dict[K, int] = dict.fromkeys(old, -1)
        for key in new:
            change[key] = change.get(key, 0) + 1
        for key, difference in change.items():
            if not difference:
                continue
            number = self[key] + difference
            if number:
                self._numbers[key] = number
            else:
                self._numbers.pop(key)
