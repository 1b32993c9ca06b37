"""Fetch requests as they are sent, for who looks at the very bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tests.broker.scene import Scene

NEWEST = 18
Asked = Sequence[tuple[int, int]]
"""(partition, fetch offset)."""


def request(
    scene: Scene,
    asked: Asked,
    correlation_id: int = 1,
    *,
    topic: str = "plain",
    version: int = NEWEST,
    client_id: str | None = "c",
    partition: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """A frame, without its length. `partition`: what else is said of each partition; `fields`: of the request."""
    each = {"partition_max_bytes": 1 << 20, **(partition or {})}
    partitions = [FetchPartition(partition=index, fetch_offset=offset, **each) for index, offset in asked]
    named: Any = {"topic_id": scene.id_of(topic)} if version >= 13 else {"topic": topic}
    told = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    message = FetchRequest(topics=[FetchTopic(**named, partitions=partitions)], **told)
    header = encode_request_header(RequestHeader(ApiKey.FETCH, version, correlation_id, client_id))
    return header + codec.encode(message, version)


def told(answer: bytes, version: int = NEWEST) -> list[PartitionData]:
    """What an answer says of the partitions of its one topic."""
    _, at = decode_response_header(ApiKey.FETCH, version, answer)
    (topic,) = codec.decode(FetchResponse, version, answer, at).responses
    return list(topic.partitions)
