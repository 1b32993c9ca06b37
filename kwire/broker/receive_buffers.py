"""Memory that large requests are received into again and again, whichever connection they come from.

What comes piece by piece would be put together by a copy, and the memory for the pieces and the copy asked for anew
each time: of a Produce of a MiB that is a twentieth of what it costs.
"""

from __future__ import annotations

from typing import Final

BUFFER_BYTES: Final = 1024 * 1024 + 64 * 1024
"""A Produce of `max.request.size`, as Java's producer fills it with batches, and what stands around these."""

MOST_BUFFERS: Final = 4
"""So many large requests may arrive, or be worked on, at a time; who comes then is received as if there were none."""


class ReceiveBuffers:
    """A few buffers, each of which is free when nobody refers to any part of it any more."""

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def take(self, size: int) -> memoryview | None:
        """The first `size` bytes of a free buffer, whatever they hold; None if they don't fit or none is free.

        There is nothing to give back: the buffer is free again with the last view of it.
        """
        if size > BUFFER_BYTES:
            return None
        for buffer in self._buffers:
            try:
                buffer.append(0)  # what somebody refers to can't change its size
            except BufferError:
                continue
            buffer.pop()
            return memoryview(buffer)[:size]
        if len(self._buffers) == MOST_BUFFERS:
            return None
        buffer = bytearray(BUFFER_BYTES + 1)
        buffer.pop()  # so that there is room for what is appended above
        self._buffers.append(buffer)
        return memoryview(buffer)[:size]

    def __len__(self) -> int:
        """How many there are by now."""
        return len(self._buffers)
