"""A Produce request to partitions of one topic that is known from an earlier one: all before these is the same again.

Which they are may differ from request to request, as may the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any

from kwire.broker.appendable import appendable, writable
from kwire.broker.produce_answers import Answer
from kwire.broker.produce_outcomes import refused_silently
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.runtime import read_long_varint, varint
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import Session
    from kwire.broker.dispatch import Parts
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log
    from kwire.storage.validated import ValidatedBatch

_FLEXIBLE_FROM = APIS[ApiKey.PRODUCE].flexible_from

MOST_PARTITIONS = 126
"""More are not appended to in one go, others are to have their turn: a batch of 16 KiB takes some 40 µs. Their number
takes one byte."""

_MOST_BYTES = 1280 * 1024
"""Nor is a request that is larger. Java's producer sends 1 MiB at most, 64 of its batches."""

_NO_TAGS = b"\0\0"
"""What stands behind the partitions in flexible versions: no tags of the topic, the request."""
_INT, _PAIR = Struct(">i"), Struct(">ii")


def size_behind(batches: Sequence[memoryview], version: int) -> int:
    """How many bytes are the number of partitions, these with their batches, and what stands behind them."""
    if version < _FLEXIBLE_FROM:
        return _INT.size + sum(_PAIR.size + len(batch) for batch in batches)
    each = (_INT.size + len(varint(len(batch) + 1)) + len(batch) + 1 for batch in batches)
    return len(varint(len(batches) + 1)) + sum(each) + len(_NO_TAGS)


class ProduceToSeveral:
    """The template of such a request, for one topic."""

    __slots__ = ("_acks", "_answer", "_flexible", "_size", "_topic", "_transactional_id", "_version")

    def __init__(self, request: ProduceRequest, topic: str | bytes, version: int, size: int) -> None:
        """`topic`: its name or its id, whichever it is asked for by. `size`: of what stands before the number of
        partitions, in bytes."""
        self._version = version
        self._flexible = version >= _FLEXIBLE_FROM
        self._size = size
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._topic = topic
        told = request.topic_data[0]
        self._answer = Answer(told.name, told.topic_id, version)

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> Parts | None:
        asked = self._asked(frame)
        if asked is None:
            return None
        transactional_id = self._transactional_id
        name = writable(broker, session, self._topic, transactional_id)
        if name is None:
            return None
        good, transactional = [], transactional_id is not None
        for index, records in asked:
            found = appendable(broker, name, index, records, self._acks, self._version, transactional, walks=False)
            if found is None:
                return None
            good.append((index, *found))
        if transactional and len({(batch.header.producer_id, batch.header.producer_epoch) for *_, batch in good}) > 1:
            return None
        return self._append(good, correlation_id)

    def _append(self, good: list[tuple[int, Partition, Log, ValidatedBatch]], correlation_id: int) -> Parts | None:
        """None where the first partition refuses its batch; when others do, they are told so, as is what was taken."""
        answer = self._answer
        pack, size, before = answer.to(len(good))
        values: list[Any] = [size, correlation_id, before]
        refusals: dict[int, KafkaError] = {}
        for index, partition, log, batch in good:
            try:
                info = partition.append_at_once(batch, log)
            except KafkaError as error:
                if index == good[0][0]:
                    return None
                refusals[index] = error
                values += (index, 0, -1, -1, log.log_start_offset, answer.between)
            else:
                start = info.log_start_offset
                values += (index, 0, info.first_offset, info.log_append_time, start, answer.between)
        if not self._acks:
            if refusals:
                raise refused_silently()
            return []
        if refusals:
            return [answer.with_refusals(values, refusals)]
        values[-1] = answer.end
        return [pack(*values)]

    def _asked(self, frame: memoryview) -> list[tuple[int, memoryview]] | None:
        """The partitions with what there is for records, each once; None where the request does not end behind them."""
        if len(frame) > _MOST_BYTES:
            return None
        at, flexible = self._size, self._flexible
        asked: list[tuple[int, memoryview]] = []
        try:
            if flexible:
                count = frame[at] - 1
                at += 1
            else:
                (count,) = _INT.unpack_from(frame, at)
                at += _INT.size
            if not 0 < count <= MOST_PARTITIONS:
                return None
            for _ in range(count):
                if flexible:
                    (index,) = _INT.unpack_from(frame, at)
                    size = frame[at + _INT.size]
                    at += _INT.size + 1
                    if size > 127:
                        size, at = read_long_varint(frame, at)
                    end = at + size - 1
                    if not size or frame[end]:  # no records; a tag
                        return None
                    asked.append((index, frame[at:end]))
                    at = end + 1
                else:
                    index, size = _PAIR.unpack_from(frame, at)
                    at += _PAIR.size
                    end = at + size
                    if not at <= end <= len(frame):
                        return None
                    asked.append((index, frame[at:end]))
                    at = end
        except (IndexError, struct_error, codec.MalformedError):
            return None
        if frame[at:] != (_NO_TAGS if flexible else b""):
            return None
        return asked if len(dict(asked)) == count else None
