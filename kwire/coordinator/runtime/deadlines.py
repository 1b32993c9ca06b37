"""What a state machine wants to happen later."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from kwire.coordinator.runtime.outcome import Now, Outcome

Operation = Callable[[Now], "Outcome[Any] | None"]


class Deadlines:
    """Operations by key, each due at a time (ms of the clock that never goes back).

    Putting a deadline off, as every heartbeat does, costs a dictionary entry: the heap learns of it only when the old
    time has come.
    """

    __slots__ = ("_heap", "_operations", "_pushed", "_serial", "on_sooner")

    def __init__(self) -> None:
        self._operations: dict[Hashable, tuple[int, Operation]] = {}
        self._pushed: dict[Hashable, int] = {}
        """The soonest time in the heap of each key."""
        self._heap: list[tuple[int, int, Hashable]] = []
        self._serial = 0
        self.on_sooner: Callable[[int], None] | None = None
        """Called with the time when a deadline is set that comes before all others."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._operations

    def __len__(self) -> int:
        return len(self._operations)

    def at(self, key: Hashable) -> int | None:
        """When the key's operation is due."""
        found = self._operations.get(key)
        return None if found is None else found[0]

    def schedule(self, key: Hashable, at_ms: int, operation: Operation) -> None:
        """`operation` is due at `at_ms`, instead of what the key had."""
        self._operations[key] = at_ms, operation
        pushed = self._pushed.get(key)
        if pushed is None or at_ms < pushed:
            self._push(key, at_ms)
            if self.on_sooner is not None and self._heap[0][2] == key:
                self.on_sooner(at_ms)

    def cancel(self, key: Hashable) -> None:
        """Does nothing where the key has no operation."""
        self._operations.pop(key, None)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._operations):
            self._forget_cancelled()

    def next_ms(self) -> int | None:
        """When something may be due; nothing is before that."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[Operation]:
        """Takes out what is due, one after the other, in the order of the times.

        What is put off or cancelled before its turn has come is not due any more.
        """
        due = []
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, _, key = heappop(self._heap)
            if self._pushed.get(key) != at_ms:
                continue  # pushed again, for a sooner time, which has been handled
            del self._pushed[key]
            found = self._operations.get(key)
            if found is None:
                continue
            if found[0] > now_ms:
                self._push(key, found[0])
            else:
                due.append(key)
        for key in due:
            found = self._operations.get(key)
            if found is not None and found[0] <= now_ms:
                del self._operations[key]
                yield found[1]

    def _push(self, key: Hashable, at_ms: int) -> None:
        self._serial += 1
        self._pushed[key] = at_ms
        heappush(self._heap, (at_ms, self._serial, key))

    def _forget_cancelled(self) -> None:
        self._heap = []
        self._pushed = {}
        for key, (at_ms, _) in self._operations.items():
            self._serial += 1
            self._pushed[key] = at_ms
            self._heap.append((at_ms, self._serial, key))
        heapify(self._heap)
