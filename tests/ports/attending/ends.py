"""A stream that is attended, and its other end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from kwire.ports.transport import Stream, StreamClosed
from tests.ports.streams import Notes


class Ends(NamedTuple):
    mine: Stream
    """The one that is attended."""
    theirs: Stream
    called: bool
    """Whether no task is woken for a call."""

    async def attend(self, notes: Notes) -> None:
        """Until the end of the stream."""
        while not notes.ended:
            await self.mine.attend(notes)
            await self.mine.send([])


async def fails(operation: Callable[[], Awaitable[object]], failures: list[str]) -> None:
    with pytest.raises(StreamClosed) as failure:
        await operation()
    failures.append(str(failure.value))
