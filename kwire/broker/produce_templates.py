"""Templates of Produce requests of one batch (`kwire.broker.templates`): all but the batch is the same again.

Who appends a batch so does what `kwire.broker.apis.produce` does with it, as long as it need not wait for anybody
else, and as long as it succeeds.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING

from kwire.cluster.partition import ALL
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.protocol import codec
from kwire.protocol.api_keys import APIS, ApiKey
from kwire.protocol.codec.runtime import read_long_varint, varint
from kwire.protocol.errors import KafkaError
from kwire.protocol.headers import RequestHeader, encode_request_header, response_header
from kwire.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kwire.protocol.records.header import TRANSACTIONAL_FLAG
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validation import check, first_batch

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import Session
    from kwire.broker.dispatch import Call

_FLEXIBLE_FROM = APIS[ApiKey.PRODUCE].flexible_from
_LOG_START_FROM = 5
BY_TOPIC_ID = 13
_NO_TAGS = b"\0\0\0"
"""What stands behind the records in flexible versions: no tags of the partition, the topic, the request."""
_LENGTH = Struct(">i")
ACKS = (0, 1, ALL)

_OFFSETS = Struct(">qqq")
"""Base offset, time of LogAppendTime, log start offset: side by side in the answer."""
_ANY_OFFSETS = (-0x7766554433221100, -0x7766554433221101, -0x7766554433221102)
"""Such as stand in no answer."""


def beginning(call: Call, frame: memoryview) -> int:
    """How many bytes stand before the length of the request's one batch; 0 where there is no template to be made."""
    request: ProduceRequest = call.request
    topics, version = request.topic_data, call.api_version
    if len(topics) != 1 or len(topics[0].partition_data) != 1 or version < _LOG_START_FROM:
        return 0
    records = topics[0].partition_data[0].records
    if records is None or request.transactional_id is not None or request.acks not in ACKS:
        return 0
    size = len(records)
    if version < _FLEXIBLE_FROM:
        return len(frame) - size - _LENGTH.size
    return len(frame) - len(_NO_TAGS) - size - len(varint(size + 1))


def template(call: Call, frame: memoryview) -> ProduceTemplate | None:
    """The template of a request for which `beginning` gave a size; None where it is not encoded as it would be here."""
    request, version = call.request, call.api_version
    header = RequestHeader(ApiKey.PRODUCE, version, call.correlation_id, call.client_id)
    if encode_request_header(header) + codec.encode(request, version) != frame:
        return None
    return ProduceTemplate(request, version, beginning(call, frame))


class ProduceTemplate:
    """For one partition."""

    __slots__ = (
        "_acks",
        "_after_offsets",
        "_answer",
        "_answer_size",
        "_before_offsets",
        "_flexible",
        "_index",
        "_size",
        "_topic",
        "_version",
    )

    def __init__(self, request: ProduceRequest, version: int, size: int) -> None:
        """`size`: how many bytes stand before the length of the batch."""
        self._version = version
        self._flexible = version >= _FLEXIBLE_FROM
        self._size = size
        self._acks = request.acks
        topic = request.topic_data[0]
        self._topic = topic.topic_id if version >= BY_TOPIC_ID else topic.name
        self._index = index = topic.partition_data[0].index
        base_offset, log_append_time, log_start = _ANY_OFFSETS
        told = PartitionProduceResponse(
            index=index, base_offset=base_offset, log_append_time_ms=log_append_time, log_start_offset=log_start
        )
        response = ProduceResponse(
            responses=[TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[told])]
        )
        answer = response_header(ApiKey.PRODUCE, version, 0) + codec.encode(response, version)
        before, _, self._after_offsets = answer.partition(_OFFSETS.pack(*_ANY_OFFSETS))
        self._before_offsets = before[4:]
        self._answer_size = len(answer)
        self._answer = Struct(f">ii{len(before) - 4}sqqq{len(self._after_offsets)}s").pack

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> bytes | None:
        batch = self._batch(frame)
        if batch is None:
            return None
        topic = self._topic
        name = topic if isinstance(topic, str) else broker.store.image.topic_names.get(topic)
        if name is None or name in INTERNAL_TOPICS or not session.allows(Operation.WRITE, ResourceType.TOPIC, name):
            return None
        partition = broker.replicas.partitions.get((name, self._index))
        if partition is None:
            return None
        acks = self._acks
        try:
            header, batch = first_batch(batch, self._version)
            if header.attributes & TRANSACTIONAL_FLAG:
                return None
            log = partition.check_appendable(acks)
            if log.append_waits or (acks == ALL and not partition.commits_at_once):
                return None
            checked = check(header, batch, log.config, broker.clock.wall_ms(), name=log.name)
            if isinstance(checked, PendingWalk):
                if checked.large:
                    return None
                checked = checked.run()
            info = partition.append_at_once(checked, log)
        except KafkaError:
            return None
        if not acks:
            return b""
        return self._answer(
            self._answer_size,
            correlation_id,
            self._before_offsets,
            info.first_offset,
            info.log_append_time,
            info.log_start_offset,
            self._after_offsets,
        )

    def _batch(self, frame: memoryview) -> memoryview | None:
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
