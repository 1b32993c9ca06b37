"""Cuts a byte stream into Kafka's frames: a 4-byte big-endian size, then that many bytes. No I/O here."""

from __future__ import annotations

from struct import Struct

_SIZE = Struct(">i")


class FrameReader:
    """Collects received bytes and hands out whole frames.

    A frame that lies whole in one received chunk is a view of it, not a copy. Of a frame that is still arriving only
    the bytes that did arrive are held, whatever size it announces.
    """

    __slots__ = ("_chunks", "_max_size", "_needed", "error", "held")

    def __init__(self, max_size: int) -> None:
        """`max_size`: the largest size a frame may announce (`socket.request.max.bytes`)."""
        self._max_size = max_size
        self._chunks: list[bytes] = []
        self.held = 0
        """Bytes held of a frame that is still arriving."""
        self._needed = 0
        self.error: str | None = None
        """Why the stream can't be read on (a size that no request can have); None while it can."""

    @property
    def missing(self) -> int:
        """How many more bytes the frame that is arriving needs at least; 0 between frames."""
        return self._needed - self.held if self.held else 0

    def feed(self, data: bytes) -> list[memoryview]:
        """Takes the next bytes of the stream; returns the frames that are whole now, without their sizes.

        A negative size or one above the limit sets `error` and ends the reading; the frames before it are returned.
        """
        if self.held:
            self._chunks.append(data)
            self.held += len(data)
            if self.held < self._needed:
                return []
            data = b"".join(self._chunks)
            self._chunks.clear()
            self.held = 0
        frames: list[memoryview] = []
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
            self._chunks.append(data[position:] if position else data)
            self.held = end - position
        return frames
