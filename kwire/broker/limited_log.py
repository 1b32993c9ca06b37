"""Events that a client can cause as often as it likes: the first ones are logged, of the others their number.

    limited.warning(logger, "connection closed", "client=%s reason=%r", host, reason)

An interval begins with the first event after the last one's end. Of each kind of event (a logger and a text) MOST lines
are written in it; where there were more, its end says how many:

    WARNING kwire.broker.connection connection closed more=4321 seconds=60
"""

from __future__ import annotations

import logging

import trio

MOST = 10
"""Lines of one kind within an interval: enough to see who does what."""

INTERVAL_SECONDS = 60


class LimitedLog:
    """Counts the events of all kinds. While `run` runs, intervals end."""

    def __init__(self) -> None:
        self._counts: dict[tuple[logging.Logger, int, str], int] = {}
        self._begun = trio.Event()

    def warning(self, logger: logging.Logger, event: str, details: str, *arguments: object) -> None:
        """Logs `event details`, the details with their arguments put in, unless there were too many of this event."""
        if self._counts_in(logger, logging.WARNING, event):
            logger.warning("%s " + details, event, *arguments)

    def error(
        self,
        logger: logging.Logger,
        event: str,
        details: str,
        *arguments: object,
        exc_info: bool | BaseException = False,
    ) -> None:
        """The same for what is wrong here; with `exc_info` the traceback of that exception, or of the one that is being
        handled."""
        if self._counts_in(logger, logging.ERROR, event):
            logger.error("%s " + details, event, *arguments, exc_info=exc_info)

    def _counts_in(self, logger: logging.Logger, level: int, event: str) -> bool:
        kind = (logger, level, event)
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        self._begun.set()
        return count <= MOST

    async def run(self) -> None:
        """Ends intervals until cancelled; then tells what the last one left out."""
        try:
            while True:
                await self._begun.wait()
                await trio.sleep(INTERVAL_SECONDS)
                self._end()
        finally:
            self._end()

    def _end(self) -> None:
        counts, self._counts = self._counts, {}
        self._begun = trio.Event()
        for (logger, level, event), count in counts.items():
            if count > MOST:
                logger.log(level, "%s more=%d seconds=%d", event, count - MOST, INTERVAL_SECONDS)
