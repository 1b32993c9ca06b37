"""Templates of Produce requests to one topic (`kwire.broker.templates`).

Who appends batches so does what `kwire.broker.producing` does with them, as long as it need not wait for anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwire.broker import produce_to_one, produce_to_several
from kwire.broker.produce_to_one import ProduceToOne
from kwire.broker.produce_to_several import MOST_PARTITIONS, ProduceToSeveral
from kwire.broker.producing import ACKS, BY_TOPIC_ID
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from kwire.broker.dispatch import Call
    from kwire.broker.templates import Template

_LOG_START_FROM: Final = 5


def beginning(call: Call, frame: memoryview) -> int:
    """How many bytes are the same in others: all before the length of the request's one batch, or before the number of
    its partitions; 0 where there is no template to be made."""
    request: ProduceRequest = call.request
    topics, version = request.topic_data, call.api_version
    if len(topics) != 1 or version < _LOG_START_FROM:
        return 0
    partitions = topics[0].partition_data
    if request.acks not in ACKS or not 0 < len(partitions) <= MOST_PARTITIONS:
        return 0
    batches = []
    for data in partitions:
        if data.records is None:
            return 0
        batches.append(memoryview(data.records))
    if len(batches) == 1:
        return len(frame) - produce_to_one.size_behind(batches[0], version)
    return len(frame) - produce_to_several.size_behind(batches, version)


def template(call: Call, frame: memoryview) -> Template | None:
    """The template of a request for which `beginning` gave a size; None where it is not encoded as it would be here."""
    request, version = call.request, call.api_version
    told = request.topic_data[0]
    header = RequestHeader(ApiKey.PRODUCE, version, call.correlation_id, call.client_id)
    if encode_request_header(header) + codec.encode(_without_tags(request), version) != frame:
        return None
    topic = told.topic_id if version >= BY_TOPIC_ID else told.name
    made = ProduceToOne if len(told.partition_data) == 1 else ProduceToSeveral
    return made(call, topic, beginning(call, frame))


def _without_tags(request: ProduceRequest) -> ProduceRequest:
    """The same, but for tagged fields that nobody knows: in their place a template would look for records."""
    (topic,) = request.topic_data
    data = [PartitionProduceData(index=each.index, records=each.records) for each in topic.partition_data]
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data)],
    )
