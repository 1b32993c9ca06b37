"""A Produce request to partitions of one topic that is known from an earlier one: all before these is the same again.

Which they are may differ from request to request, as may the batches. One that takes long gives way to others amid its
batches; what can't be appended at once is left to the handler, with all behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Final

from kwire.broker.appendable import writable
from kwire.broker.appends import Appends
from kwire.broker.context import RequestContext
from kwire.broker.produce_answers import Answer
from kwire.broker.produce_outcomes import all_refused, refused_silently
from kwire.broker.producing import produce
from kwire.ports.at_once import give_way
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.varints import read_long_varint, varint
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.header import FLAGS_AT, TRANSACTIONAL_FLAG, producer_said

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.dispatch import Call, Parts
    from kwire.broker.parked import Parked
    from kwire.broker.session import Session
    from kwire.broker.templates import Begun

_FLEXIBLE_FROM: Final = APIS[ApiKey.PRODUCE].flexible_from

MOST_PARTITIONS: Final = 126
"""Their number takes one byte. Java's producer sends 1 MiB at most, 64 of its batches."""

_NO_TAGS: Final = b"\0\0"
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

    settles = False
    """Of one batch, which is all that some requests have, another one is quicker."""

    __slots__ = (
        "_acks",
        "_answer",
        "_client_id",
        "_flexible",
        "_named",
        "_size",
        "_timeout_ms",
        "_topic",
        "_transactional_id",
        "_version",
    )

    def __init__(self, call: Call, topic: str | bytes, size: int) -> None:
        """`topic`: its name or its id, whichever it is asked for by. `size`: of what stands before the number of
        partitions, in bytes."""
        request: ProduceRequest = call.request
        version = self._version = call.api_version
        self._client_id = call.client_id
        self._flexible = version >= _FLEXIBLE_FROM
        self._size = size
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._topic = topic
        self._timeout_ms = request.timeout_ms
        told = request.topic_data[0]
        self._named = told.name, told.topic_id
        self._answer = Answer(told.name, told.topic_id, version)

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> Parts | Begun | None:
        asked = self._asked(frame)
        if asked is None or not self._allowed_together(asked):
            return None
        name = writable(broker, session, self._topic, self._transactional_id)
        if name is None:
            return None
        topic_id = None if isinstance(self._topic, str) else self._topic
        appends = Appends(
            broker, name, topic_id, asked, self._acks, self._version, self._transactional_id, self._answer.between
        )
        appends.go_on()
        if appends.done == len(asked):
            return self._told(appends, correlation_id)
        return self._rest(broker, session, appends, correlation_id) if appends.done else None

    def _allowed_together(self, asked: list[tuple[int, memoryview]]) -> bool:
        """Whether the handler would not refuse all batches for one of them that belongs to a transaction."""
        if self._transactional_id is not None:
            return len({producer_said(records) for _, records in asked}) == 1
        try:
            for _, records in asked:  # a look, not a call, for each
                if records[FLAGS_AT] & TRANSACTIONAL_FLAG:
                    return False
        except IndexError:  # no batch
            return False
        return True

    async def _rest(
        self, broker: Broker, session: Session, appends: Appends, correlation_id: int
    ) -> Parts | ProduceResponse | Parked | None:
        """Goes on with the others, and leaves what needs more than that to the handler."""
        asked = appends.asked
        while not appends.stuck and appends.done < len(asked):
            await give_way()
            if writable(broker, session, self._topic, self._transactional_id) != appends.name:
                break
            appends.go_on()
        if appends.done == len(asked):
            return self._told(appends, correlation_id)
        name, topic_id = self._named
        rest = [PartitionProduceData(index=index, records=records) for index, records in asked[appends.done :]]
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[TopicProduceData(name=name, topic_id=topic_id, partition_data=rest)],
        )
        told = self._answer.told(appends.values, appends.refusals)
        try:
            return await produce(broker, RequestContext(self._version, self._client_id, session), request, told)
        except KafkaError as error:
            response = all_refused(request, error)
            response.responses[0].partition_responses[:0] = told
            return response

    def _told(self, appends: Appends, correlation_id: int) -> Parts:
        """The answer, when all is done. Raises RequestRefused where there is none to say what was refused."""
        answer, values = self._answer, appends.values
        if not self._acks:
            if appends.refusals:
                raise refused_silently()
            return []
        if appends.refusals:
            return [answer.with_refusals(values, appends.refusals, correlation_id)]
        pack, size, before = answer.to(len(appends.asked))
        values[-1] = answer.end
        return [pack(size, correlation_id, before, *values)]

    def _asked(self, frame: memoryview) -> list[tuple[int, memoryview]] | None:
        """The partitions with what there is for records, each once; None where the request does not end behind them."""
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
