"""Answers to Produce requests that were known from earlier ones: what they have in common is encoded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from kwire.broker.produce_outcomes import refused, taken
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.varints import varint
from kwire.protocol.errors import KafkaError
from kwire.protocol.headers import response_header
from kwire.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

_FLEXIBLE_FROM: Final = APIS[ApiKey.PRODUCE].flexible_from
_INT, _INDEX_AND_ERROR = Struct(">i"), Struct(">ih")
_OFFSETS: Final = Struct(">qqq")
"""Base offset, time of LogAppendTime, log start offset: side by side in the answer, behind index and error code."""
_ANY_OFFSETS: Final = (-0x7766554433221100, -0x7766554433221101, -0x7766554433221102)
"""Such as stand in no answer."""

_VALUES_EACH: Final = 6
"""So many are packed of each partition."""


@lru_cache(maxsize=1024)
def _packer(partitions: int, before: int, between: int, end: int) -> Callable[..., bytes]:
    each = f"ihqqq{between}s" * (partitions - 1) + f"ihqqq{end}s"
    return Struct(f">ii{before}s{each}").pack


class Answer:
    """What is told of partitions of one topic, none of which refused its batch."""

    __slots__ = ("_before", "_topic", "_version", "between", "end")

    def __init__(self, name: str, topic_id: bytes, version: int) -> None:
        self._topic = name, topic_id
        self._version = version
        base_offset, log_append_time, log_start = _ANY_OFFSETS
        encoded = self._encoded([taken(0, base_offset, log_append_time, log_start)] * 2, 0)
        before, between, self.end = encoded.split(_OFFSETS.pack(*_ANY_OFFSETS))
        self._before = before[_INT.size : -_INDEX_AND_ERROR.size - len(self._number(2))]
        self.between = between[: -_INDEX_AND_ERROR.size]

    def to(self, partitions: int) -> tuple[Callable[..., bytes], int, bytes]:
        """What encodes an answer of so many partitions, and two of its arguments: the bytes that there will be, and
        what stands before the partitions.

        It takes the first of these, the correlation id, and the second; then of each partition its index, 0 for no
        error, the base offset, the time of LogAppendTime (ms, or -1), the log start offset, and `between`, but `end` of
        the last one.
        """
        before = self._before + self._number(partitions)
        between, end = len(self.between), len(self.end)
        size = _INT.size + len(before) + partitions * (_INDEX_AND_ERROR.size + _OFFSETS.size + between) - between + end
        return _packer(partitions, len(before), between, end), size, before

    def with_refusals(self, values: list[Any], refusals: dict[int, KafkaError], correlation_id: int) -> bytes:
        """As what encodes it with these values of partitions, but for `refusals`, as `told` has it."""
        encoded = self._encoded(self.told(values, refusals), correlation_id)
        return _INT.pack(len(encoded)) + encoded

    @staticmethod
    def told(values: list[Any], refusals: dict[int, KafkaError]) -> list[PartitionProduceResponse]:
        """The same before it is encoded, some partitions refused, by their indexes: only their log start offsets
        count."""
        told = []
        for at in range(0, len(values), _VALUES_EACH):
            index, _, base_offset, log_append_time, log_start, _ = values[at : at + _VALUES_EACH]
            if index in refusals:
                told.append(refused(index, refusals[index], log_start))
            else:
                told.append(taken(index, base_offset, log_append_time, log_start))
        return told

    def _number(self, partitions: int) -> bytes:
        return _INT.pack(partitions) if self._version < _FLEXIBLE_FROM else varint(partitions + 1)

    def _encoded(self, partitions: list[PartitionProduceResponse], correlation_id: int) -> bytes:
        name, topic_id = self._topic
        topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partitions)
        header = response_header(ApiKey.PRODUCE, self._version, correlation_id)
        return header + codec.encode(ProduceResponse(responses=[topic]), self._version)
