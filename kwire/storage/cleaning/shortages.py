"""The logs that wait for room on their volume to be cleaned."""

from __future__ import annotations

import logging
from typing import NamedTuple

from kwire.ports.clock import Clock
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log import Log
from kwire.storage.segment import Segment

logger = logging.getLogger(__name__)

_AGAIN_S = 300.0
"""After a volume was full although there seemed to be room, which a quota may do."""


class TooLittleRoom(Exception):
    """What is to be written next does not fit on the volume, or did not."""

    def __init__(self, segment: Segment, needed: int, error: OSError | None = None) -> None:
        """From `segment` on the log is not cleaned. `needed`: bytes. `error`: of the write that met a full volume."""
        super().__init__(str(error))
        self.segment = segment
        self.needed = needed
        self.error = error


class _Waiting(NamedTuple):
    log: Log
    version: int
    """Of the log: after a truncation, or a move to another dir, something else is needed."""
    segment: Segment
    """What the room is needed for."""
    needed: int
    again: float
    """Not before this, by the monotonic clock."""


class Shortages:
    """Told of once each, until the log was cleaned. For the event loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[TopicPartition, _Waiting] = {}
        self._spare: dict[str, int] = {}
        """By log dir, as far as it was asked for since the last look."""

    def look(self) -> None:
        """From now on what `lasts` says is of how it is now."""
        self._spare.clear()

    def lasts(self, log: Log) -> bool:
        """Whether to clean the log would be in vain still."""
        waiting = self._waiting.get(log.key)
        if waiting is None or waiting.log is not log or waiting.version != log.version:
            return False
        number = log.segments.floor_number(waiting.segment.base_offset)
        if number < 0 or log.segments[number] is not waiting.segment:  # retention removed it: the next may be small
            return False
        if self._clock.monotonic() < waiting.again:
            return True
        log_dir = log.log_dir
        if log_dir.room is None:
            return False
        if log_dir.path not in self._spare:
            self._spare[log_dir.path] = log_dir.room.spare
        return self._spare[log_dir.path] < waiting.needed

    def begin(self, log: Log, lack: TooLittleRoom) -> None:
        """The cleaning of the log had to stop, or could not begin."""
        known = self._waiting.get(log.key)
        if known is None or known.log is not log:
            room = log.log_dir.room
            logger.warning(
                "%s is not cleaned from offset %d on: the volume of log dir %s has too little room for it, %s; "
                "it is tried again when there is more",
                log.name,
                lack.segment.base_offset,
                log.log_dir.path,
                lack.error or f"{lack.needed} bytes are needed and {max(0, room.spare) if room else 0} can be had",
            )
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if not waiting.log.deleted}
        again = self._clock.monotonic() + (_AGAIN_S if lack.error else 0)
        self._waiting[log.key] = _Waiting(log, log.version, lack.segment, lack.needed, again)

    def end(self, log: Log) -> None:
        """The log is cleaned."""
        self._waiting.pop(log.key, None)
