"""How much may still be written to a volume with log dirs: producers are refused before it is full.

A volume that is full in the middle of a write takes its log dirs offline, and a log dir that is offline serves nobody.
So some room is kept for what must go on, and produces and copies are refused while there is no more than that. Reads go
on, and so do retention, the cleaner and deletions, which make room; when there is some, produces are taken again. Who
writes much at a time and can do without (the cleaner, a cache) reserves room for it before.

    usable bytes   kept * 2     kept          kept / 2      0
    produces       taken again  refused
    coordinators                taken again   refused              offsets of groups, ends of transactions
    all else                                                full   indexes, checkpoints, metadata, tiering, a stop
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final

from kwire.ports.clock import Clock
from kwire.ports.files import FileSystem
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_KEPT_BYTES: Final = 1 << 20
_KEPT_BYTES_PER_LOG: Final = 32 * 1024
"""A snapshot, the leader epochs and the ends of two indexes, each a few blocks, twice for what is replaced at once."""

_KEPT_SHARE: Final = 20
"""At most one part in so many of the volume is kept."""

_KEPT_FROM_COORDINATORS: Final = 0.5
"""So many times that is kept from the coordinators too, whose groups commit as long as anybody consumes."""

_KEPT_TO_BEGIN_AGAIN: Final = 2
"""So many times what is kept from a writer must be left before he may write again."""

_KEPT_FROM_CACHES: Final = 2
"""So many times that a cache leaves: it shall not be the one that makes the dir full."""

_UNKNOWN_BYTES: Final = 1 << 62
"""What there is where the system does not say: the write will tell."""

_LOOK_BYTES: Final = 64 << 20
"""After so many bytes at most the volume is looked at again: others write there too."""

_LOOK_AGAIN_S: Final = 0.1
"""While there is no room, it is not looked more often."""


class _Writers:
    """Those from whom the same is kept."""

    __slots__ = ("full", "left", "looked", "times_kept", "what")

    def __init__(self, what: str, times_kept: float) -> None:
        self.what = what
        self.times_kept = times_kept
        self.left = 0
        """Bytes that they may write without a look."""
        self.full = False
        self.looked = 0.0


class Room:
    """Of one volume, for all log dirs on it. For the event loop's thread: asking the system takes microseconds."""

    __slots__ = ("_clock", "_coordinators", "_files", "_logs", "_name", "_paths", "_producers", "_reserved")

    def __init__(self, files: FileSystem, clock: Clock, paths: Sequence[str], logs: Callable[[], int]) -> None:
        """`paths` of the log dirs; `logs` says how many there are in them."""
        self._files = files
        self._clock = clock
        self._paths = paths
        self._name = f"log dir {paths[0]}" if len(paths) == 1 else f"log dirs {', '.join(paths)}"
        self._logs = logs
        self._producers = _Writers("produces to its partitions", 1)
        self._coordinators = _Writers("offsets of groups and ends of transactions too", _KEPT_FROM_COORDINATORS)
        self._reserved = 0
        """Bytes that are about to be written."""

    def admits(self, size: int) -> bool:
        """Whether `size` bytes may be written, which count as written then."""
        producers = self._producers
        producers.left -= size
        return producers.left >= 0 or self._look(producers, size)

    def check(self, size: int, *, coordinator: bool = False) -> None:
        """Raises KAFKA_STORAGE_ERROR where `size` bytes may not be written."""
        writers = self._producers
        writers.left -= size
        if writers.left >= 0:
            return
        if coordinator:
            writers = self._coordinators
            writers.left -= size
            if writers.left >= 0:
                return
        if not self._look(writers, size):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The volume of {self._name} is full")

    def spares(self, size: int) -> bool:
        """Whether `size` bytes may be written that nobody needs, which count as written then. Asks nobody."""
        if self._producers.left < size:
            return False
        self._producers.left -= size
        return True

    @property
    def spare(self) -> int:
        """Bytes that are left above what is kept and reserved, less than none perhaps. Asks the system."""
        return self._spare(1)

    def reserve(self, size: int, *, for_cache: bool = False) -> Reservation | None:
        """Sees to it that `size` bytes can be written; None where there is no room for them."""
        if self._spare(_KEPT_FROM_CACHES if for_cache else 1) < size:
            return None
        self._all_look()
        return Reservation(self, size)

    def change_reserved(self, size: int) -> None:
        """For a reservation: so many bytes more."""
        self._reserved += size

    def _spare(self, times_kept: int) -> int:
        space = self._space()
        if space is None:
            return _UNKNOWN_BYTES
        total, usable = space
        return usable - times_kept * self._kept(total) - self._reserved

    def _space(self) -> tuple[int, int] | None:
        """(total, usable) bytes; None where the system does not say."""
        for path in self._paths:
            with suppress(OSError):
                return self._files.space(path)
        return None

    def _kept(self, total: int) -> int:
        return min(_KEPT_BYTES + _KEPT_BYTES_PER_LOG * self._logs(), total // _KEPT_SHARE)

    def _all_look(self) -> None:
        """Who was to write without a look has to look now: of the same bytes less are left."""
        self._producers.left = self._coordinators.left = 0

    def _look(self, writers: _Writers, size: int) -> bool:
        self._all_look()
        now = self._clock.monotonic()
        if writers.full and 0 <= now - writers.looked < _LOOK_AGAIN_S:
            return False
        writers.looked = now
        space = self._space()
        if space is None:  # the write will tell
            return True
        total, usable = space
        kept = int(self._kept(total) * writers.times_kept)
        if writers.full:  # it shall not be full again at once
            kept *= _KEPT_TO_BEGIN_AGAIN
        spare = usable - kept - self._reserved - size
        self._tell(writers, spare < 0, usable, kept + self._reserved)
        writers.left = max(0, min(spare // 2, _LOOK_BYTES))
        return spare >= 0

    def _tell(self, writers: _Writers, full: bool, usable: int, kept: int) -> None:
        if full and not writers.full:
            logger.error(
                "%s: the volume is full, %d bytes are left, of which %d are kept for what must go on; %s are refused "
                "until there is room: delete topics or records, move partitions to another volume, or enlarge it",
                self._name,
                usable,
                kept,
                writers.what,
            )
        elif writers.full and not full:
            logger.warning("%s: there is room again, %d bytes: %s are taken", self._name, usable, writers.what)
        writers.full = full


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
