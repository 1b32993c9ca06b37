"""Transactional producers, in few words."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from compat_tests.oracle.asking import batch, produce
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kwire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kwire.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kwire.protocol.messages.end_txn import EndTxnRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.protocol.schema import Message

TRANSACTION = 1
_WAIT = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
BUMPS_FROM = 5
"""EndTxn from this version on has the client go on with the next epoch."""


class Producer(NamedTuple):
    id: int
    epoch: int

    def after(self, epochs: int) -> Producer:
        return self._replace(epoch=self.epoch + epochs)


def settle_transactions(side: Side) -> None:
    """Waits until there is a transaction coordinator with producer ids, which Apache Kafka gets when somebody asks."""
    side.call(
        FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["any"]),
        until=lambda found: not found.coordinators[0].error_code,
    )
    side.call(
        DescribeTransactionsRequest(transactional_ids=["any"]),
        until=lambda answer: (
            answer.transaction_states[0].error_code in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        ),
    )
    init(side, "any")


def init_request(transactional_id: str, expected: Producer | None = None, timeout_ms: int = 60_000) -> Any:
    producer = expected or Producer(-1, -1)
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
    )


def init(side: Side, transactional_id: str, expected: Producer | None = None, timeout_ms: int = 60_000) -> Producer:
    """A producer that may begin, once what was open is aborted."""
    response = _patiently(side, init_request(transactional_id, expected, timeout_ms))
    assert not response.error_code, response
    return Producer(response.producer_id, response.producer_epoch)


def _patiently(side: Side, request: Message, version: int | None = None) -> Any:
    """The answer when nothing is under way any more for which the client has to wait."""
    deadline = time.monotonic() + PATIENCE
    while True:
        response = side.call(request, version)
        if not _WAIT & set(_codes(response)):
            return response
        assert time.monotonic() < deadline, response
        time.sleep(POLL)


def _codes(response: Any) -> list[int]:
    if isinstance(response, AddPartitionsToTxnResponse):
        return [
            result.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        ]
    return [response.error_code]


def topics(*partitions: tuple[str, int]) -> list[AddPartitionsToTxnTopic]:
    found: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, index in partitions:
        found.setdefault(topic, AddPartitionsToTxnTopic(name=topic)).partitions.append(index)
    return list(found.values())


def add(transactional_id: str, producer: Producer, *partitions: tuple[str, int]) -> AddPartitionsToTxnRequest:
    """As a producer asks, up to v3."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics(*partitions),
    )


def of_a_broker(
    transactional_id: str, producer: Producer, *partitions: tuple[str, int], verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    """One transaction of a request as brokers ask, from v4 on."""
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=topics(*partitions),
    )


def add_offsets(transactional_id: str, producer: Producer, group: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer.id, producer_epoch=producer.epoch, group_id=group
    )


def end(transactional_id: str, producer: Producer, *, commit: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def markers(
    producer: Producer,
    *partitions: tuple[str, int],
    commit: bool = False,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    found: dict[str, WritableTxnMarkerTopic] = {}
    for topic, index in partitions:
        found.setdefault(topic, WritableTxnMarkerTopic(name=topic)).partition_indexes.append(index)
    return WritableTxnMarker(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        topics=list(found.values()),
    )


def write_markers(side: Side, *asked: WritableTxnMarker, version: int = 2, note: str = "") -> None:
    side.ask(WriteTxnMarkersRequest(markers=list(asked)), version, note=note)


def write(
    side: Side,
    transactional_id: str,
    producer: Producer,
    topic: str,
    sequence: int = 0,
    *,
    count: int = 1,
    version: int = 11,
    partition: int = 0,
    note: str = "",
) -> None:
    """Produces a batch of the transaction and records the answer."""
    blob = batch(
        count,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = produce(side, topic, blob, version, transactional_id=transactional_id, partition=partition)
    side.ask(request, version, note=note)


def begin(side: Side, transactional_id: str, producer: Producer, *partitions: tuple[str, int]) -> None:
    """Adds the partitions, once the transaction before is complete."""
    response = _patiently(side, add(transactional_id, producer, *partitions), 3)
    assert not any(_codes(response)), response


def complete(side: Side, transactional_id: str) -> None:
    """Waits until the markers of a transaction that was ended are written."""
    deadline = time.monotonic() + PATIENCE
    while True:
        state = side.call(DescribeTransactionsRequest(transactional_ids=[transactional_id])).transaction_states[0]
        if state.transaction_state in ("CompleteCommit", "CompleteAbort"):
            return
        assert time.monotonic() < deadline, state
        time.sleep(POLL)


def described(side: Side, *transactional_ids: str, note: str = "") -> None:
    """Records their states. Apache Kafka tells the partitions in the order of a hash table."""
    response = side.call(DescribeTransactionsRequest(transactional_ids=list(transactional_ids)))
    for state in response.transaction_states:
        for topic in state.topics:
            topic.partitions.sort()
    side.record_response(f"DescribeTransactions v0 ({note})", response)
