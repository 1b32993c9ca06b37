"""What is asked for is done by a thread, in order, and forgotten."""

from __future__ import annotations

import threading
import weakref

from kwire.ports.asking import Asking

PATIENCE_S = 30.0


class Asked:
    """Writes down who called it, and for what."""

    def __init__(self, calls: list[tuple[str, int, int]], done: threading.Event) -> None:
        self._calls = calls
        self._done = done

    def ask(self, start: int, end: int) -> None:
        self._calls.append((threading.current_thread().name, start, end))
        if start == 2:
            self._done.set()


def test_one_thread_does_it_in_order() -> None:
    asking, calls, done = Asking(), list[tuple[str, int, int]](), threading.Event()
    before = threading.active_count()
    asked = Asked(calls, done)
    for number in range(3):
        asking.ask(asked.ask, number, number + 10)
    assert done.wait(PATIENCE_S)
    assert calls == [("kwire read ahead", number, number + 10) for number in range(3)]
    assert threading.active_count() == before + 1


def test_what_was_asked_is_not_kept() -> None:
    """A file that nobody refers to is closed, and its room on the disk is free."""
    asking, done, gone = Asking(), threading.Event(), threading.Event()
    asked = Asked([], done)
    weakref.finalize(asked, gone.set)
    asking.ask(asked.ask, 2, 3)
    assert done.wait(PATIENCE_S)
    del asked
    assert gone.wait(PATIENCE_S)
