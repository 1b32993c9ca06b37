"""Cuts a byte stream into Kafka's frames: a 4-byte big-endian size, then that many bytes. No I/O here."""

from __future__ import annotations

from struct import Struct
from typing import Final

from kwire.broker.receive_buffers import ReceiveBuffers

_SIZE: Final = Struct(">i")

LARGE: Final = 128 * 1024
"""Bytes, its size among them, from which on a frame that comes in pieces may be received into a buffer that is used
again,"""

BEGUN: Final = 32 * 1024
"""when so many are there: who announces much and sends nothing takes no buffer from others."""


class FrameReader:
    """Collects received bytes and hands out whole frames.

    A frame that lies whole in one received chunk is a view of it, not a copy. Of a frame that is still arriving only
    the bytes that did arrive are held, whatever size it announces, or one of the few buffers that all share.
    """

    __slots__ = ("_buffers", "_chunks", "_max_size", "_needed", "_view", "error", "held")

    def __init__(self, max_size: int, buffers: ReceiveBuffers | None = None) -> None:
        """`max_size`: the largest size a frame may announce (`socket.request.max.bytes`).

        `buffers`: for large frames.
        """
        self._max_size = max_size
        self._buffers = buffers
        self._chunks: list[bytes] = []
        self._view: memoryview | None = None
        """Of a buffer, where the frame that is arriving lies in one."""
        self.held = 0
        """Bytes held of a frame that is still arriving."""
        self._needed = 0
        self.error: str | None = None
        """Why the stream can't be read on (a size that no request can have); None while it can."""

    @property
    def missing(self) -> int:
        """How many more bytes the frame that is arriving needs at least; 0 between frames."""
        return self._needed - self.held if self.held else 0

    @property
    def large(self) -> bool:
        """Whether the frame that is arriving is one."""
        return self.held > 0 and self._needed >= LARGE

    @property
    def room(self) -> memoryview | None:
        """Where the next bytes of the stream may be put instead of being fed, as many as fit; see `filled`."""
        return None if self._view is None else self._view[self.held :]

    def filled(self, size: int) -> list[memoryview]:
        """The first `size` bytes of `room` are the next ones of the stream. Returns as `feed`."""
        view = self._view
        assert view is not None
        self.held += size
        if self.held < self._needed:
            return []
        self._view, self.held = None, 0
        return [view[_SIZE.size :]]

    def feed(self, data: bytes) -> list[memoryview]:
        """Takes the next bytes of the stream; returns the frames that are whole now, without their sizes.

        A negative size or one above the limit sets `error` and ends the reading; the frames before it are returned.
        """
        frames: list[memoryview] = []
        if self._view is not None:
            size = min(self.missing, len(data))
            self._view[self.held : self.held + size] = data[:size]
            frames = self.filled(size)
            if not frames:
                return []
            data = data[size:]
        elif self.held:
            self._hold(data)
            if self.held < self._needed:
                return []
            data = b"".join(self._chunks)
            self._chunks.clear()
            self.held = 0
        view = memoryview(data)
        position, end = 0, len(data)
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(data, position)
            if size < 0 or size > self._max_size:
                self.error = f"a frame of {size} bytes was announced, 0 to {self._max_size} are allowed"
                return frames
            if end - position - 4 < size:
                self._needed = size + 4
                break
            frames.append(view[position + 4 : position + 4 + size])
            position += 4 + size
        else:
            self._needed = 4
        if position < end:
            self._hold(data[position:] if position else data)
        return frames

    def _hold(self, data: bytes) -> None:
        """More bytes, or the first, of a frame that is not whole, or becomes so by the last of them."""
        self._chunks.append(data)
        self.held += len(data)
        if self._needed >= LARGE and BEGUN <= self.held < self._needed and self._buffers is not None:
            self._view = self._buffers.take(self._needed)
            if self._view is not None:
                self._view[: self.held] = b"".join(self._chunks)
                self._chunks.clear()
