"""AddOffsetsToTxn (key 25): a group's offsets take part in a transaction (KIP-98).

What takes part is the partition of __consumer_offsets that keeps them. v2 tells fenced producers PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.fenced_producers import as_known_to
from kwire.coordinator.runtime.coordinator import partition_of
from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.partitions import add_partitions
from kwire.metadata.names import CONSUMER_OFFSETS
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_KNOWS_FENCED_FROM = 2


async def handle(broker: Broker, context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    transactional_id, session = request.transactional_id, context.session
    if not session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    producer = Producer(request.producer_id, request.producer_epoch)
    # The topic may not be there yet: a group asks for its coordinator before it commits.
    count = broker.coordinators.groups.partitions or broker.config["offsets.topic.num.partitions"]
    partitions = [(CONSUMER_OFFSETS, partition_of(request.group_id, count))]
    try:
        await broker.coordinators.transactions.write_when_complete(
            transactional_id,
            lambda machine, now, _: add_partitions(machine, now, transactional_id, producer, partitions, 0),
        )
    except KafkaError as error:
        raise as_known_to(context, _KNOWS_FENCED_FROM, error) from error
    return AddOffsetsToTxnResponse()


def failed(request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)
