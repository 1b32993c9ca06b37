"""`python -m benchmarks.bare_consuming FOLDER TOPIC PARTITIONS`: how fast a consumer can read at most.

A server on a free port of 127.0.0.1, which it prints. FOLDER is a broker's, to which nothing is produced any more, and
has one segment of each of the topic's partitions. The server answers what a consumer asks that is told its partitions,
and nothing else: a Fetch with the batches that follow, out of their files by sendfile, in no session. It serves by
Trio's own means, and looks at nothing but where batches begin, which it knows before it is asked.
"""

from __future__ import annotations

import socket
import sys
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack, unpack_from
from typing import Any

import trio

from benchmarks.bare import CHUNK
from benchmarks.bare_reading import SEND_BUFFER, send_parts
from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.transport import Part
from kwire.protocol import codec
from kwire.protocol.headers import decode_request_header, response_header
from kwire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kwire.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kwire.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kwire.protocol.schema import Message
from kwire.storage.batch_walk import headers

_HOST = "127.0.0.1"
_ID = 1
"""Of the broker that the server says it is."""
_SIZE = 4
"""Bytes in front of a frame."""
_FIRST_SEGMENT = f"{0:020}.log"
_VERSIONS = {0: (3, 7), 1: (4, 12), 2: (1, 5), 3: (4, 8), 10: (0, 2), 18: (0, 3)}
"""What the server offers, by API key. It takes no Produce, by which librdkafka judges what records it may be sent."""


class _Segment:
    """The batches of one partition: `base_offsets`, and the positions at which they begin, with the end of the last."""

    def __init__(self, path: Path) -> None:
        self._file = PosixFileSystem().open(str(path))
        self.base_offsets: list[int] = []
        self.positions: list[int] = []
        end, self.end_offset = 0, 0
        for position, header in headers(self._file, 0, path.stat().st_size):
            self.base_offsets.append(header.base_offset)
            self.positions.append(position)
            end, self.end_offset = position + header.size, header.next_offset
        self.positions.append(end)

    def batches(self, offset: int, size: int) -> FileSlice | None:
        """Those from the one with that offset on, of so many bytes at most but one at least; None beyond the end."""
        if offset >= self.end_offset:
            return None
        first = bisect_right(self.base_offsets, offset) - 1
        begin = self.positions[first]
        end = self.positions[max(bisect_right(self.positions, begin + size) - 1, first + 1)]
        return FileSlice(self._file, begin, end - begin)


class _Answers:
    """To a consumer of one topic."""

    def __init__(self, topic: str, segments: list[_Segment], port: int) -> None:
        self._topic = topic
        self._segments = segments
        self._port = port
        self._apis: dict[int, tuple[type[Message], Callable[[Any], Message]]] = {
            1: (FetchRequest, self._fetch),
            2: (ListOffsetsRequest, self._list_offsets),
            3: (MetadataRequest, self._metadata),
            10: (FindCoordinatorRequest, self._find_coordinator),
            18: (ApiVersionsRequest, self._api_versions),
        }

    def to(self, frame: bytes) -> tuple[list[Part], float]:
        """What is to be sent for a frame without its size, and after how many seconds."""
        header, body_at = decode_request_header(frame)
        request_type, handle = self._apis[header.api_key]
        request = codec.decode(request_type, header.api_version, frame, body_at)
        response = handle(request)
        wait_s = request.max_wait_ms / 1000 if isinstance(response, FetchResponse) and not response.responses else 0.0
        head = response_header(header.api_key, header.api_version, header.correlation_id)
        first, *rest = codec.encode_parts(response, header.api_version)
        assert isinstance(first, bytes)
        size = len(head) + len(first) + sum(map(len, rest))
        return [pack(">i", size) + head + first, *rest], wait_s

    def _api_versions(self, _: ApiVersionsRequest) -> Message:
        offered = [ApiVersion(api_key=key, min_version=v[0], max_version=v[1]) for key, v in _VERSIONS.items()]
        return ApiVersionsResponse(api_keys=offered)

    def _metadata(self, _: MetadataRequest) -> Message:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=_ID, replica_nodes=[_ID], isr_nodes=[_ID])
            for index in range(len(self._segments))
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=_ID, host=_HOST, port=self._port)],
            controller_id=_ID,
            topics=[MetadataResponseTopic(name=self._topic, partitions=partitions)],
        )

    def _find_coordinator(self, _: FindCoordinatorRequest) -> Message:
        return FindCoordinatorResponse(node_id=_ID, host=_HOST, port=self._port)

    def _list_offsets(self, request: ListOffsetsRequest) -> Message:
        """Whatever is asked for: it is where the partitions begin."""
        partitions = [
            ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=0)
            for topic in request.topics
            for asked in topic.partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=self._topic, partitions=partitions)])

    def _fetch(self, request: FetchRequest) -> Message:
        partitions, left = [], request.max_bytes
        for asked in (asked for topic in request.topics for asked in topic.partitions):
            segment = self._segments[asked.partition]
            found = segment.batches(asked.fetch_offset, min(asked.partition_max_bytes, left)) if left > 0 else None
            if found is not None:
                left -= len(found)
                end = segment.end_offset
                partitions.append(
                    PartitionData(
                        partition_index=asked.partition, high_watermark=end, last_stable_offset=end, records=found
                    )
                )
        topic = FetchableTopicResponse(topic=self._topic, partitions=partitions)
        return FetchResponse(responses=[topic] if partitions else [])


async def _serve(folder: Path, topic: str, partitions: int) -> None:
    segments = [_Segment(folder / f"{topic}-{index}" / _FIRST_SEGMENT) for index in range(partitions)]
    (listener,) = await trio.open_tcp_listeners(0, host=_HOST)
    port = listener.socket.getsockname()[1]
    answers = _Answers(topic, segments, port)

    async def serve(stream: trio.SocketStream) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        held = bytearray()
        with suppress(trio.BrokenResourceError, ConnectionError):  # a consumer that has all leaves its last Fetch
            while data := await stream.receive_some(CHUNK):
                held += data
                while len(held) >= _SIZE and len(held) >= (end := _SIZE + unpack_from(">i", held)[0]):
                    parts, wait_s = answers.to(bytes(held[_SIZE:end]))
                    del held[:end]
                    await trio.sleep(wait_s)
                    await send_parts(stream, parts)

    print(port, flush=True)
    await trio.serve_listeners(serve, [listener])


def main(folder: str, topic: str, partitions: str) -> None:
    """Until it is killed."""
    trio.run(_serve, Path(folder), topic, int(partitions))


if __name__ == "__main__":
    main(*sys.argv[1:])
