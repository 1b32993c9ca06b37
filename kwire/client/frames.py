"""Response frames out of a byte stream."""

from __future__ import annotations

from kwire.client.errors import ProtocolViolation
from kwire.ports.transport import Stream, StreamClosed

READ_BYTES = 64 * 1024
LARGEST_READ_BYTES = 1024 * 1024


class FrameReader:
    """Frames of a 4-byte length and a body. A cancelled `read` loses nothing: the next one goes on where it was."""

    def __init__(self, stream: Stream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    async def read(self) -> memoryview:
        """The next body. StreamClosed at the end of the stream, ProtocolViolation for an impossible length."""
        while True:
            missing = self._missing()
            if missing == 0:
                return self._take()
            data = await self._stream.receive(min(max(missing, READ_BYTES), LARGEST_READ_BYTES))
            if not data:
                raise StreamClosed("closed by the broker")
            self._buffer += data

    def _missing(self) -> int:
        if len(self._buffer) < 4:
            return 4 - len(self._buffer)
        size = int.from_bytes(self._buffer[:4], "big", signed=True)
        if not 4 <= size <= self._max_bytes:
            raise ProtocolViolation(
                f"the broker announced a response of {size} bytes (at most {self._max_bytes} are taken): is this a "
                "Kafka listener without TLS?"
            )
        return max(0, 4 + size - len(self._buffer))

    def _take(self) -> memoryview:
        end = 4 + int.from_bytes(self._buffer[:4], "big")
        frame, rest = self._buffer, bytearray()
        if len(frame) > end:
            rest += memoryview(frame)[end:]
        self._buffer = rest
        return memoryview(frame)[4:end]
