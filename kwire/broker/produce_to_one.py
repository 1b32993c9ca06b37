"""A Produce request of one batch that is known from an earlier one: all but the batch is the same again."""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from kwire.broker.appendable import appendable, writable
from kwire.broker.produce_answers import Answer
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.varints import read_long_varint, varint
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.dispatch import Call, Parts
    from kwire.broker.session import Session

_FLEXIBLE_FROM: Final = APIS[ApiKey.PRODUCE].flexible_from
_NO_TAGS: Final = b"\0\0\0"
"""What stands behind the records in flexible versions: no tags of the partition, the topic, the request."""
_LENGTH: Final = Struct(">i")


def size_behind(records: memoryview, version: int) -> int:
    """How many bytes are the length of the records, these, and what stands behind them."""
    size = len(records)
    return size + (_LENGTH.size if version < _FLEXIBLE_FROM else len(varint(size + 1)) + len(_NO_TAGS))


class ProduceToOne:
    """The template of such a request, for one partition."""

    settles = True

    __slots__ = (
        "_acks",
        "_answer_size",
        "_before",
        "_end",
        "_flexible",
        "_index",
        "_pack",
        "_size",
        "_topic",
        "_topic_id",
        "_transactional_id",
        "_version",
    )

    def __init__(self, call: Call, topic: str | bytes, size: int) -> None:
        """`topic`: its name or its id, whichever it is asked for by. `size`: of what stands before the length of the
        batch, in bytes."""
        request: ProduceRequest = call.request
        version = self._version = call.api_version
        self._flexible = version >= _FLEXIBLE_FROM
        self._size = size
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._topic = topic
        self._topic_id = None if isinstance(topic, str) else topic
        told = request.topic_data[0]
        self._index = told.partition_data[0].index
        answer = Answer(told.name, told.topic_id, version)
        self._pack, self._answer_size, self._before = answer.to(1)
        self._end = answer.end

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> Parts | None:
        records = self._records(frame)
        if records is None:
            return None
        transactional_id = self._transactional_id
        name = writable(broker, session, self._topic, transactional_id)
        if name is None:
            return None
        index = self._index
        transactional = transactional_id is not None
        now_ms = broker.clock.wall_ms()
        found = appendable(
            broker, name, self._topic_id, index, records, self._acks, self._version, transactional, now_ms
        )
        if found is None:
            return None
        partition, log, batch = found
        try:
            info = partition.append_at_once(batch, log)
        except KafkaError:
            return None
        if not self._acks:
            return []
        answer = self._pack(
            self._answer_size,
            correlation_id,
            self._before,
            index,
            0,
            info.first_offset,
            info.log_append_time,
            info.log_start_offset,
            self._end,
        )
        return [answer]

    def _records(self, frame: memoryview) -> memoryview | None:
        """What there is for records; None where the request does not end behind them."""
        at = self._size
        try:
            if self._flexible:
                size = frame[at]
                at += 1
                if size > 127:
                    size, at = read_long_varint(frame, at)
                end = at + size - 1
                return frame[at:end] if frame[end:] == _NO_TAGS else None
            (size,) = _LENGTH.unpack_from(frame, at)
            return frame[at + _LENGTH.size :] if size == len(frame) - at - _LENGTH.size else None
        except (IndexError, struct_error, codec.MalformedError):
            return None
