"""Answers to Produce requests that were known from earlier ones: what they have in common is encoded once."""

from __future__ import annotations

from struct import Struct
from typing import Any

from kwire.broker.produce_outcomes import refused, taken
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import KafkaError
from kwire.protocol.headers import response_header
from kwire.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

_INT, _INDEX_AND_ERROR = Struct(">i"), Struct(">ih")
_OFFSETS = Struct(">qqq")
"""Base offset, time of LogAppendTime, log start offset: side by side in the answer, behind index and error code."""
_ANY_OFFSETS = (-0x7766554433221100, -0x7766554433221101, -0x7766554433221102)
"""Such as stand in no answer."""

_VALUES_BEFORE, _VALUES_EACH = 3, 6
"""So many are packed before the partitions, and of each."""


class Answer:
    """What is told of so many partitions of one topic, none of which refused its batch.

    `pack` takes `size`, the correlation id and `before`; then of each partition its index, 0 for no error, the base
    offset, the time of LogAppendTime (ms, or -1), the log start offset, and `between`, but `end` of the last one.
    """

    __slots__ = ("_topic", "_version", "before", "between", "end", "pack", "size")

    def __init__(self, name: str, topic_id: bytes, version: int, partitions: int) -> None:
        self._topic = name, topic_id
        self._version = version
        base_offset, log_append_time, log_start = _ANY_OFFSETS
        encoded = self._encoded([taken(0, base_offset, log_append_time, log_start)] * partitions, 0)
        before, *between, self.end = encoded.split(_OFFSETS.pack(*_ANY_OFFSETS))
        self.size = len(encoded)
        self.before = before[_INT.size : -_INDEX_AND_ERROR.size]
        self.between = between[0][: -_INDEX_AND_ERROR.size] if between else b""
        each = f"ihqqq{len(self.between)}s" * (partitions - 1) + f"ihqqq{len(self.end)}s"
        self.pack = Struct(f">ii{len(self.before)}s{each}").pack

    def with_refusals(self, values: list[Any], refusals: dict[int, KafkaError]) -> bytes:
        """As `pack` with these values, but some partitions refused, by their indexes: only their log start offsets
        count."""
        told = []
        for at in range(_VALUES_BEFORE, len(values), _VALUES_EACH):
            index, _, base_offset, log_append_time, log_start, _ = values[at : at + _VALUES_EACH]
            if index in refusals:
                told.append(refused(index, refusals[index], log_start))
            else:
                told.append(taken(index, base_offset, log_append_time, log_start))
        encoded = self._encoded(told, values[1])
        return _INT.pack(len(encoded)) + encoded

    def _encoded(self, partitions: list[PartitionProduceResponse], correlation_id: int) -> bytes:
        name, topic_id = self._topic
        topic = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partitions)
        header = response_header(ApiKey.PRODUCE, self._version, correlation_id)
        return header + codec.encode(ProduceResponse(responses=[topic]), self._version)
