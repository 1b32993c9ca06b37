"""A thread that has the system read what is about to be read by others: to ask for that may wait for memory and for the
disk's queue, as the event loop must not, and nobody needs to know when it was done."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread


class Asking:
    """Does one thing after the other, in a thread that the first of them starts."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[int, int], None], int, int]] = SimpleQueue()
        self._thread: Thread | None = None
        self._starting = Lock()

    def ask(self, function: Callable[[int, int], None], start: int, end: int) -> None:
        """Has `function` called with the range; it must not raise."""
        self._work.put((function, start, end))
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = Thread(target=self._run, name="kwire read ahead", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        while True:
            function, start, end = self._work.get()
            function(start, end)
            del function  # with the file, which is closed when nobody refers to it
