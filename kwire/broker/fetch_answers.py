"""Answers to Fetch requests that were known from earlier ones: what they have in common is encoded once."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from kwire.broker.dispatch import Parts
from kwire.cluster.replica import Bound, PartitionRead
from kwire.ports.files import Buffer, FileSlice
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.varints import varint
from kwire.protocol.headers import response_header
from kwire.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)

FLEXIBLE_FROM: Final = APIS[ApiKey.FETCH].flexible_from
_INT, _INDEX_AND_ERROR, _SIZE_AND_ID = Struct(">i"), Struct(">ih"), Struct(">ii")
_OFFSETS: Final = Struct(">qqq")
_PARTITION: Final = Struct(">ihqqq")
"""Index, error code, high watermark, last stable offset, log start offset: what a partition's answer begins with."""
_ANY_OFFSETS: Final = (-0x7766554433221100, -0x7766554433221101, -0x7766554433221102)
_ANY_RECORDS: Final = b"\xfe records \xfe"
"""Such as stand in no answer."""


def count(number: int, version: int) -> bytes:
    """The length of an array."""
    return _INT.pack(number) if version < FLEXIBLE_FROM else varint(number + 1)


class Answer:
    """What is told of partitions of one topic, all of which could be read and met no aborted transaction."""

    __slots__ = ("_before", "_behind", "_between", "_end", "_flexible", "_version")

    def __init__(self, topic: str | bytes, version: int, bound: Bound) -> None:
        """`topic`: its name or its id, whichever it was asked for by."""
        self._version = version
        self._flexible = version >= FLEXIBLE_FROM
        high_watermark, stable, start = _ANY_OFFSETS
        # read_committed is told of no aborted transactions, read_uncommitted is not told of any.
        aborted: list[AbortedTransaction] | None = [] if bound == Bound.LAST_STABLE_OFFSET else None
        partition = PartitionData(
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=start,
            aborted_transactions=aborted,
            records=_ANY_RECORDS,
        )
        named = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition] * 2, **named)])
        encoded = response_header(ApiKey.FETCH, version, 0) + codec.encode(response, version)
        before, first, last = encoded.split(_OFFSETS.pack(*_ANY_OFFSETS))
        length = _INT.size if version < FLEXIBLE_FROM else len(varint(len(_ANY_RECORDS) + 1))
        self._before = before[_INT.size : -_INDEX_AND_ERROR.size - len(count(2, version))]
        """Behind the correlation id and before the number of partitions."""
        self._between = first[: first.index(_ANY_RECORDS) - length]
        """Of a partition: behind its offsets and before the length of its records."""
        self._behind = first[first.index(_ANY_RECORDS) + len(_ANY_RECORDS) : -_INDEX_AND_ERROR.size]
        """And behind these."""
        self._end = last[last.index(_ANY_RECORDS) + len(_ANY_RECORDS) + len(self._behind) :]

    def parts(self, correlation_id: int, partitions: Sequence[tuple[int, PartitionRead, FileSlice | Buffer]]) -> Parts:
        """The answer as it goes to the stream: of each partition its index, the read, and the records as they are
        sent."""
        between, behind, flexible = self._between, self._behind, self._flexible
        pieces = [self._before, count(len(partitions), self._version)]
        parts: Parts = []
        size = _INT.size
        for index, read, records in partitions:
            length = len(records)
            pieces += (
                _PARTITION.pack(index, 0, read.high_watermark, read.last_stable_offset, read.log_start_offset),
                between,
                varint(length + 1) if flexible else _INT.pack(length),
            )
            if records.__class__ is FileSlice:
                parts += (b"".join(pieces), records)
                pieces = [behind]
            else:
                pieces += (records, behind)  # type: ignore[arg-type]
        pieces.append(self._end)
        rest = b"".join(pieces)
        if rest:
            parts.append(rest)
        for part in parts:
            size += len(part)
        parts[0] = _SIZE_AND_ID.pack(size, correlation_id) + parts[0]  # type: ignore[operator]
        return parts
