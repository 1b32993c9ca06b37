"""Templates of Fetch requests of one topic outside fetch sessions (`kwire.broker.templates`).

Who has no sessions (librdkafka, Sarama) names all partitions in each request, of which nothing but the offsets is new.
A Java consumer's requests in a session are short, and each is different.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from kwire.broker.fetch_answers import FLEXIBLE_FROM
from kwire.broker.fetch_sessions import FINAL_EPOCH
from kwire.broker.fetch_without_session import BOUNDS, BY_TOPIC_ID, LONGEST_RACK, MOST_PARTITIONS, FetchWithoutSession
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.codec.varints import varint
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from kwire.broker.dispatch import Call
    from kwire.broker.templates import Template

_WITH_LEADER_EPOCH: Final = 9
_WITHOUT_REPLICA_ID: Final = 15
_CLIENT_ID: Final = Struct(">h")
_CLIENT_ID_AT: Final = 8
_TOPIC_ID_SIZE: Final = 16
_SETTINGS_SIZE: Final = 21
"""From the longest wait (ms) to the session's epoch."""


def beginning(call: Call, frame: memoryview) -> int:
    """How many bytes are the same in others: all before the number of the topic's partitions; 0 where there is no
    template to be made."""
    request: FetchRequest = call.request
    topics, version = request.topics, call.api_version
    if request.session_epoch != FINAL_EPOCH or request.session_id or len(topics) != 1 or request.max_bytes < 0:
        return 0
    if version < _WITH_LEADER_EPOCH or not 0 < len(topics[0].partitions) <= MOST_PARTITIONS:
        return 0
    (client_id,) = _CLIENT_ID.unpack_from(frame, _CLIENT_ID_AT)
    size = _CLIENT_ID_AT + _CLIENT_ID.size + max(client_id, 0) + _SETTINGS_SIZE
    if version < _WITHOUT_REPLICA_ID:
        size += 4
    size += _TOPIC_ID_SIZE if version >= BY_TOPIC_ID else _name_size(topics[0].topic, version)
    # The header's tags and the number of topics: a request in which they are longer gets no template.
    size += 2 if version >= FLEXIBLE_FROM else 4
    return size if size < len(frame) else 0


def _name_size(name: str, version: int) -> int:
    size = len(name.encode())
    return size + (len(varint(size + 1)) if version >= FLEXIBLE_FROM else 2)


def template(call: Call, frame: memoryview) -> Template | None:
    """The template of a request for which `beginning` gave a size; None where it is not encoded as it would be here, or
    is a broker's."""
    request, version = call.request, call.api_version
    if request.isolation_level not in BOUNDS or len(request.rack_id) > LONGEST_RACK:
        return None
    header = RequestHeader(ApiKey.FETCH, version, call.correlation_id, call.client_id)
    if encode_request_header(header) + codec.encode(_without_tags(request), version) != frame:
        return None
    return FetchWithoutSession(call, beginning(call, frame))


def _without_tags(request: FetchRequest) -> FetchRequest:
    """The same from a consumer, but for tagged fields: in their place a template would look for partitions."""
    (topic,) = request.topics
    partitions = [
        FetchPartition(
            partition=each.partition,
            current_leader_epoch=each.current_leader_epoch,
            fetch_offset=each.fetch_offset,
            last_fetched_epoch=each.last_fetched_epoch,
            log_start_offset=each.log_start_offset,
            partition_max_bytes=each.partition_max_bytes,
        )
        for each in topic.partitions
    ]
    return FetchRequest(
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation_level=request.isolation_level,
        topics=[FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)],
        rack_id=request.rack_id,
    )
