"""Produce requests as they are sent, for who looks at the very bytes."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack
from typing import Any

import trio

from kwire.ports.transport import Stream, StreamClosed
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from tests.broker.scene import HOST, PORT, Scene

NOW = 1_700_000_000_000
NEWEST = 13
LONG = 1_000_000
"""Virtual seconds: longer than any request waits."""


def batch(count: int = 1, size: int = 10, *, key: bytes | None = b"k", time_ms: int = NOW, **options: Any) -> bytes:
    return build_batch([Record(index, time_ms, key, b"v" * size, []) for index in range(count)], **options)


def request(
    scene: Scene,
    records: bytes | None,
    correlation_id: int = 1,
    *,
    topic: str = "plain",
    version: int = NEWEST,
    acks: int = 1,
    client_id: str | None = "c",
    index: int = 0,
    transactional_id: str | None = None,
    more: Sequence[tuple[int, bytes | None]] = (),
) -> bytes:
    """A frame, without its length. `more`: other partitions, and the records for them."""
    named: Any = {"topic_id": scene.id_of(topic)} if version >= 13 else {"name": topic}
    partitions = [PartitionProduceData(index=each, records=blob) for each, blob in ((index, records), *more)]
    asked = TopicProduceData(**named, partition_data=partitions)
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[asked])
    header = encode_request_header(RequestHeader(ApiKey.PRODUCE, version, correlation_id, client_id))
    return header + codec.encode(message, version)


class Producer:
    """A connection that sends frames as they are."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._stream: Stream | None = None

    async def send(self, *frames: bytes) -> list[bytes]:
        """The answers that came until one more request was answered, or the connection ended or said nothing."""
        if self._stream is None:
            self._stream = await self.scene.network.transport("raw").connect(HOST, PORT)
        last = request(self.scene, batch(), -7, topic="last")
        data, answers = b"", []
        with trio.move_on_after(LONG):
            try:
                await self._stream.send([pack(">i", len(frame)) + frame for frame in (*frames, last)])
                while came := await self._stream.receive(1 << 20):
                    data += came
                    while len(data) >= 4 and len(data) >= 4 + (size := unpack(">i", data[:4])[0]):
                        answers.append(data[4 : 4 + size])
                        data = data[4 + size :]
                        if answers[-1][:4] == pack(">i", -7):
                            return answers[:-1]
            except StreamClosed:
                pass
        self._stream.close()
        self._stream = None
        return [*answers, b"the end"]
