"""How much may still be written to a log dir: producers are refused before its volume is full.

A volume that is full in the middle of a write takes a log dir offline, and a log dir that is offline serves nobody. So
some room is kept for what must go on (offsets of groups, ends of transactions, new indexes, checkpoints, an orderly
stop), and produces and copies are refused while there is no more than that. Reads go on, and so do retention, the
cleaner and deletions, which make room; when there is some, produces are taken again. Who writes much at a time and can
do without (the cleaner, a cache) reserves room for it before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType

from kwire.ports.clock import Clock
from kwire.ports.files import FileSystem
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_KEPT_BYTES = 1 << 20
_KEPT_BYTES_PER_LOG = 32 * 1024
"""A snapshot, the leader epochs and the ends of two indexes, each a few blocks, twice for what is replaced at once."""

_KEPT_SHARE = 20
"""At most one part in so many of the volume is kept."""

_KEPT_TO_BEGIN_AGAIN = 2
"""So many times that must be left before produces are taken again."""

_KEPT_FROM_CACHES = 2
"""So many times that a cache leaves: it shall not be the one that makes the dir full."""

_UNKNOWN_BYTES = 1 << 62
"""What there is where the system does not say: the write will tell."""

_LOOK_BYTES = 64 << 20
"""After so many bytes at most the volume is looked at again: others write there too."""

_LOOK_AGAIN_S = 0.1
"""While there is no room, it is not looked more often."""


class Room:
    """Of one log dir. For the event loop's thread: the question to the system takes a few microseconds."""

    __slots__ = ("_clock", "_files", "_full", "_left", "_logs", "_looked", "_path", "_reserved")

    def __init__(self, files: FileSystem, clock: Clock, path: str, logs: Callable[[], int]) -> None:
        """`logs` says how many there are in the dir."""
        self._files = files
        self._clock = clock
        self._path = path
        self._logs = logs
        self._left = 0
        """Bytes that may be written without a look."""
        self._full = False
        self._looked = 0.0
        self._reserved = 0
        """Bytes that are about to be written."""

    def admits(self, size: int) -> bool:
        """Whether `size` bytes may be written, which count as written then."""
        self._left -= size
        return self._left >= 0 or self._look(size)

    def check(self, size: int) -> None:
        """Raises KAFKA_STORAGE_ERROR where `size` bytes may not be written."""
        self._left -= size
        if self._left < 0 and not self._look(size):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The volume of log dir {self._path} is full")

    @property
    def spare(self) -> int:
        """Bytes that are left above what is kept and reserved, less than none perhaps. Asks the system."""
        return self._spare(1)

    def reserve(self, size: int, *, for_cache: bool = False) -> Reservation | None:
        """Sees to it that `size` bytes can be written; None where there is no room for them."""
        if self._spare(_KEPT_FROM_CACHES if for_cache else 1) < size:
            return None
        self._left = 0  # who was to write without a look has to look now
        return Reservation(self, size)

    def change_reserved(self, size: int) -> None:
        """For a reservation: so many bytes more."""
        self._reserved += size

    def _spare(self, times_kept: int) -> int:
        try:
            total, usable = self._files.space(self._path)
        except OSError:
            return _UNKNOWN_BYTES
        return usable - times_kept * self._kept(total) - self._reserved

    def _kept(self, total: int) -> int:
        return min(_KEPT_BYTES + _KEPT_BYTES_PER_LOG * self._logs(), total // _KEPT_SHARE)

    def _look(self, size: int) -> bool:
        self._left = 0
        now = self._clock.monotonic()
        if self._full and 0 <= now - self._looked < _LOOK_AGAIN_S:
            return False
        self._looked = now
        try:
            total, usable = self._files.space(self._path)
        except OSError:  # the write will tell
            return True
        kept = self._kept(total)
        if self._full:  # it shall not be full again at once
            kept *= _KEPT_TO_BEGIN_AGAIN
        spare = usable - kept - self._reserved - size
        self._tell(spare < 0, usable, kept + self._reserved)
        self._left = max(0, min(spare // 2, _LOOK_BYTES))
        return spare >= 0

    def _tell(self, full: bool, usable: int, kept: int) -> None:
        if full and not self._full:
            logger.error(
                "log dir %s is full: %d bytes are left on its volume, of which %d are kept for offsets of groups, "
                "checkpoints, a cleaning under way and an orderly stop; produces to its partitions are refused with "
                "KAFKA_STORAGE_ERROR until there is room: delete topics or records, move partitions to another log "
                "dir, or enlarge it",
                self._path,
                usable,
                kept,
            )
        elif self._full and not full:
            logger.warning("log dir %s has room again, %d bytes: produces are taken", self._path, usable)
        self._full = full


class Reservation:
    """Room for bytes that one writer is about to write; a context, after which it is given back."""

    __slots__ = ("_left", "_room", "_written")

    def __init__(self, room: Room, size: int) -> None:
        self._room = room
        self._left = size
        self._written = 0
        room.change_reserved(size)

    def wrote(self, total: int) -> bool:
        """So many bytes are written by now. False where that is more than was reserved, and there is no room."""
        more = total - self._written
        self._written = total
        known = min(more, self._left)
        self._left -= known
        self._room.change_reserved(-known)
        return known == more or self._room.spare >= 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._room.change_reserved(-self._left)
        self._left = 0
