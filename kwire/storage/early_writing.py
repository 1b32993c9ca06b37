"""The system is had to begin to write what was appended 5 s ago, instead of all at once when it is 30 s old.

An append waits while the system finds blocks for what it writes to the same file. For what was appended in 30 s, which
is what it does by itself (`vm.dirty_expire_centisecs`), that took up to 61 ms, and everybody waits with the append. A
burst that is over soon is not slowed down by the disk: that is what the memory is for (ARCHITECTURE.md, Decisions).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kwire.storage import reserve

if TYPE_CHECKING:
    from kwire.storage.log import Log
    from kwire.storage.log_dir import LogDir
    from kwire.storage.segment import Segment
    from kwire.storage.services import StorageServices

STEP = 8 * 1024 * 1024
"""So much is begun at once."""

DELAY_MS = 5000
"""So long ago it was appended."""


class EarlyWriting:
    """What is to be written of one log dir, where a slow disk must not keep the chores of others waiting: one chore at
    a time begins with all that is due."""

    __slots__ = ("_due", "_under_way")

    def __init__(self) -> None:
        self._due: deque[tuple[float, Segment, int, int]] = deque()
        self._under_way = False

    def put(self, services: StorageServices, log_dir: LogDir, segment: Segment, start: int, end: int) -> None:
        """[start, end) of the segment is due in DELAY_MS."""
        self._due.append((services.clock.monotonic() + DELAY_MS / 1000, segment, start, end))
        if not self._under_way:
            self._under_way = True
            self._begin(services, log_dir, DELAY_MS)

    def _begin(self, services: StorageServices, log_dir: LogDir, delay_ms: int) -> None:
        def work() -> None:
            while self._due and self._due[0][0] <= services.clock.monotonic():
                _, segment, start, end = self._due.popleft()
                segment.begin_writing(start, end)

        def done() -> None:
            if self._due:
                wait_ms = (self._due[0][0] - services.clock.monotonic()) * 1000
                self._begin(services, log_dir, max(0, int(wait_ms) + 1))
            else:
                self._under_way = False

        services.chores.later(delay_ms, log_dir, work, done)


def schedule(log: Log, segment: Segment) -> None:
    """To be called where it is due: what was appended since the last time will be written.

    But for the folio that the next append goes on with, which would be written twice.
    """
    start, end = segment.writing_due - STEP, segment.size - segment.size % reserve.PIECE
    segment.writing_due = end + STEP
    log.log_dir.early_writing.put(log.services, log.log_dir, segment, start, end)
