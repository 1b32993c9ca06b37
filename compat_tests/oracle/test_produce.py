"""Produce: where to, with which acks, and in what order errors are found."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import batch, delete_records, fetch, fill, list_offsets, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(3, 14)
LATEST = -1


def test_unknown_topics_and_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        for version in VERSIONS:
            side.ask(produce(side, side.name("absent"), batch(), version), version, note="unknown topic")
            side.ask(produce(side, topic, batch(), version, partition=2), version, note="unknown partition")
            side.ask(produce(side, topic, batch(), version, partition=-1), version, note="negative partition")
        for name in ("", "bad name", "a" * 250, ".", "__transaction_state", "__cluster_metadata"):
            side.ask(produce(side, name, batch(), 12), 12, note=repr(name[:20]))

    both.agree(scenario)


def test_an_id_of_zero(both: Both) -> None:
    def scenario(side: Side) -> None:
        data = [PartitionProduceData(index=0, records=batch())]
        side.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=[TopicProduceData(partition_data=data)]), 13)

    both.agree(scenario)


@pytest.mark.parametrize("acks", [2, -2, 3, 32767, -32768])
def test_acks_that_do_not_exist(both: Both, acks: int) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 7, 8, 12, 13):
            side.ask(produce(side, topic, batch(), version, acks=acks), version)
            side.ask(produce(side, side.name("absent"), b"", version, acks=acks), version, note="and no topic")
            side.ask(produce(side, topic, b"", version, acks=acks), version, note="and no batch")
        side.ask(list_offsets(topic, LATEST))

    both.agree(scenario, "why a batch is refused")


@pytest.mark.parametrize("acks", [1, -1])
def test_acks(both: Both, acks: int) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in VERSIONS:
            side.ask(produce(side, topic, batch(2), version, acks=acks), version)
        side.ask(fetch(side, topic))

    both.agree(scenario)


def answer_to_unacknowledged(side: Side, request: ProduceRequest, version: int) -> None:
    """Sends a Produce with acks=0 and something that is answered, and records what came of the latter."""
    side.send(request, version)
    side.ask(list_offsets("no-such-topic", LATEST), note=f"after Produce v{version} without acks")


def test_without_acks(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 9, 12, 13):
            answer_to_unacknowledged(side, produce(side, topic, batch(2), version, acks=0), version)
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_errors_without_acks_close_the_connection(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 12, 13):
            for name in (topic, side.name("absent")):
                for blob in (b"", batch(2)):
                    answer_to_unacknowledged(side, produce(side, name, blob, version, acks=0), version)
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_several_topics_and_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        first, second = side.topic("first", 3), side.topic("second")
        for version in (3, 8, 12, 13):
            named = {
                name: {"topic_id": side.id_of(name)} if version >= 13 else {"name": name}
                for name in (first, second, side.name("absent"))
            }
            side.ask(
                ProduceRequest(
                    acks=-1,
                    timeout_ms=1000,
                    topic_data=[
                        TopicProduceData(
                            **named[first],
                            partition_data=[
                                PartitionProduceData(index=2, records=batch(2)),
                                PartitionProduceData(index=5, records=batch(2)),
                                PartitionProduceData(index=0, records=b""),
                            ],
                        ),
                        TopicProduceData(
                            **named[side.name("absent")],
                            partition_data=[PartitionProduceData(index=0, records=batch(2))],
                        ),
                        TopicProduceData(
                            **named[second], partition_data=[PartitionProduceData(index=0, records=batch(3))]
                        ),
                    ],
                ),
                version,
            )
        for partition in range(3):
            side.ask(fetch(side, first, partition=partition))

    both.agree(scenario, "why a batch is refused")


def test_a_partition_twice(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 12, 13):
            named = {"topic_id": side.id_of(topic)} if version >= 13 else {"name": topic}
            one, other = (PartitionProduceData(index=0, records=batch(count)) for count in (1, 2))
            side.ask(
                ProduceRequest(
                    acks=1, timeout_ms=1000, topic_data=[TopicProduceData(**named, partition_data=[one, other])]
                ),
                version,
                note="within a topic",
            )
            side.ask(
                ProduceRequest(
                    acks=1,
                    timeout_ms=1000,
                    topic_data=[
                        TopicProduceData(**named, partition_data=[one]),
                        TopicProduceData(**named, partition_data=[other]),
                    ],
                ),
                version,
                note="in two topics",
            )
            side.ask(list_offsets(topic, LATEST))

    both.agree(scenario)


def test_nothing_at_all(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (3, 9, 13):
            side.ask(ProduceRequest(acks=1, timeout_ms=1000), version, note="no topics")
            named = {"topic_id": side.id_of(topic)} if version >= 13 else {"name": topic}
            side.ask(
                ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(**named)]),
                version,
                note="no partitions",
            )

    both.agree(scenario)


def test_min_insync_replicas_above_the_replicas(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(min_insync_replicas="2")
        for version in VERSIONS:
            for acks in (1, -1):
                side.ask(produce(side, topic, batch(), version, acks=acks), version, note=f"acks {acks}")
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_after_records_were_deleted_the_answer_tells_the_start(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(5))
        side.ask(delete_records(topic, 3))
        for version in VERSIONS:
            side.ask(produce(side, topic, batch(), version), version)

    both.agree(scenario)
