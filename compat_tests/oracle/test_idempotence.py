"""Producers with an id: InitProducerId, sequence numbers, epochs, and what DescribeProducers tells of them."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.asking import batch, fetch, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.records.compression import Compression

pytestmark = pytest.mark.xdist_group("oracle")

MAX_SEQUENCE = 2**31 - 1
REFUSALS = "why a batch is refused"


def has_ids(response: Any) -> bool:
    """Apache Kafka has to fetch its first block of producer ids."""
    return response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def producer_id(side: Side) -> int:
    response = side.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), until=has_ids)
    assert not response.error_code, response
    return response.producer_id


def numbered(producer: int, sequence: int, count: int = 1, epoch: int = 0, **options: Any) -> bytes:
    return batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)


def send(side: Side, topic: str, blob: bytes, note: str, version: int = 13) -> None:
    side.ask(produce(side, topic, blob, version), version, note=note)


def producers(side: Side, topic: str, note: str = "") -> None:
    """Records what the partition remembers."""
    side.ask(DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])]), note=note)


def test_ids(both: Both) -> None:
    def scenario(side: Side) -> None:
        known = producer_id(side)
        for version in range(6):
            for timeout in (0, -1, 60_000, 2**31 - 1):
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=timeout)
                side.ask(request, version, note=f"time-out {timeout}")
        for version in (3, 4, 5):
            for given_id, epoch in (
                (known, 0),
                (known, 5),
                (known, 32767),
                (known, -1),
                (-1, 0),
                (-1, 5),
                (-2, -1),
                (-1, -2),
                (-2, -2),
                (2**62, 0),
            ):
                request = InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=60_000, producer_id=given_id, producer_epoch=epoch
                )
                what = {known: "known", 2**62: "unknown"}.get(given_id, given_id)
                side.ask(request, version, note=f"id {what}, epoch {epoch}")

    both.agree(scenario)


def test_an_empty_transactional_id(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(6):
            side.ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000), version)

    both.agree(scenario)


def test_duplicates(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        for version in (3, 7, 12, 13):
            send(side, topic, numbered(me, 0, 3), "first batch, again and again", version)
        for sequence in range(3, 13):
            send(side, topic, numbered(me, sequence), f"{sequence}")
        for sequence in range(12, 2, -1):
            send(side, topic, numbered(me, sequence), f"{sequence} again")
        send(side, topic, numbered(me, 0, 3), "first batch, forgotten")
        send(side, topic, numbered(me, 11, 2), "two batches as one")
        send(side, topic, numbered(me, 12, 2), "a known and a new one")
        send(side, topic, numbered(me, 12, 1, start=1), "a known one with other content")
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario, REFUSALS)


def test_duplicates_in_a_topic_of_append_time(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(message_timestamp_type="LogAppendTime"), producer_id(side)
        for _ in range(2):
            send(side, topic, numbered(me, 0, 3), "three")
            send(side, topic, numbered(me, 3, 2), "two")
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_duplicates_are_known_before_they_are_recompressed(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(compression_type="gzip"), producer_id(side)
        for codec in Compression:
            send(side, topic, numbered(me, 0, 3, compression=codec), codec.name)
        producers(side, topic)

    both.agree(scenario)


def test_gaps(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        send(side, topic, numbered(me, 0, 2), "0 and 1")
        for version in (3, 8, 13):
            send(side, topic, numbered(me, 3), "3, a gap", version)
            send(side, topic, numbered(me, 1), "1, within a batch", version)
            send(side, topic, numbered(me, 1, 5), "1 to 5", version)
        send(side, topic, numbered(me, MAX_SEQUENCE), "the last number")
        send(side, topic, numbered(me, 2), "2")
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario, REFUSALS)


def test_the_last_sequence_number_wraps(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        send(side, topic, numbered(me, MAX_SEQUENCE - 1, 2), "up to the last number")
        send(side, topic, numbered(me, 1), "1, a gap")
        send(side, topic, numbered(me, 0, 2), "from 0 on")
        send(side, topic, numbered(me, MAX_SEQUENCE - 1, 2), "the first batch again")
        producers(side, topic)
        other = producer_id(side)
        send(side, topic, numbered(other, MAX_SEQUENCE - 1, 4), "across the last number")
        send(side, topic, numbered(other, 2, 1), "behind it")
        send(side, topic, numbered(other, MAX_SEQUENCE - 1, 4), "across the last number again")
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario, REFUSALS)


def test_epochs(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        send(side, topic, numbered(me, 0, 2, epoch=3), "epoch 3")
        send(side, topic, numbered(me, 2, epoch=2), "an older epoch")
        send(side, topic, numbered(me, 0, 2, epoch=2), "an older epoch with known numbers")
        send(side, topic, numbered(me, 2, epoch=4), "a newer epoch that does not begin at 0")
        send(side, topic, numbered(me, 0, 2, epoch=4), "a newer epoch")
        send(side, topic, numbered(me, 0, 2, epoch=4), "a newer epoch again")
        send(side, topic, numbered(me, 0, 2, epoch=3), "the older epoch again")
        send(side, topic, numbered(me, 2, 2, epoch=3), "the older epoch goes on")
        send(side, topic, numbered(me, 0, 1, epoch=32767), "the last epoch")
        for version in (3, 8):
            send(side, topic, numbered(me, 0, 1, epoch=5), "after the last epoch", version)
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario, REFUSALS)


def test_an_unknown_producer_may_begin_anywhere(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        send(side, topic, numbered(me, 17), "17")
        send(side, topic, numbered(me, 18), "18")
        send(side, topic, numbered(me, 17), "17 again")
        send(side, topic, numbered(2**62, 5, epoch=7), "an id that nobody gave out")
        side.ask(fetch(side, topic))
        producers(side, topic)

    both.agree(scenario)


def test_the_transactional_flag(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, me = side.topic(), producer_id(side)
        for version in (3, 8, 11, 12, 13):
            for transactional_id in (None, "it"):
                for blob in (numbered(me, 0, transactional=True), batch(1, transactional=True), numbered(me, 0)):
                    side.ask(
                        produce(side, topic, blob, version, transactional_id=transactional_id),
                        version,
                        note=f"as {transactional_id}",
                    )
        producers(side, topic)
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_describing_producers(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        some = [producer_id(side) for _ in range(3)]
        for number, producer in enumerate(some):
            for sequence in range(number + 1):
                send(side, topic, numbered(producer, sequence, epoch=number), f"producer {number}")
        producers(side, topic)
        side.ask(DescribeProducersRequest(), note="nothing")
        side.ask(
            DescribeProducersRequest(
                topics=[
                    TopicRequest(name=topic, partition_indexes=[1, 0, 2, -1, 0]),
                    TopicRequest(name=side.name("absent"), partition_indexes=[0]),
                    TopicRequest(name=topic, partition_indexes=[]),
                    TopicRequest(name="", partition_indexes=[0]),
                ]
            ),
            note="known and unknown ones",
        )

    both.agree(scenario)
