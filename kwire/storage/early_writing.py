"""The system is had to begin to write what was appended 5 s ago, instead of all at once when it is 30 s old.

An append waits while the system finds blocks for what it writes to the same file. For what was appended in 30 s, which
is what it does by itself (`vm.dirty_expire_centisecs`), that took up to 61 ms, and everybody waits with the append. A
burst that is over soon is not slowed down by the disk: that is what the memory is for (ARCHITECTURE.md, Decisions).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kwire.storage import reserve

if TYPE_CHECKING:
    from kwire.storage.log import Log
    from kwire.storage.segment import Segment

STEP = 8 * 1024 * 1024
"""So much is begun at once."""

DELAY_MS = 5000
"""So long ago it was appended."""


def schedule(log: Log, segment: Segment) -> None:
    """To be called where it is due: what was appended since the last time will be written.

    But for the folio that the next append goes on with, which would be written twice.
    """
    start, end = segment.writing_due - STEP, segment.size - segment.size % reserve.PIECE
    segment.writing_due = end + STEP
    log.services.chores.later(DELAY_MS, log.log_dir, partial(segment.begin_writing, start, end))
