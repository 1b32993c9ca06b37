"""librdkafka in groups of the consumer protocol (`group.protocol=consumer`, KIP-848)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from kwire.testing.factories import TopicFactory

PATIENCE = 60.0
"""Seconds for a group to settle."""
QUICK = {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 100}
"""Members hear of a new assignment with their next heartbeat."""


@pytest.fixture(scope="module")
def broker(against: Any) -> Iterator[Any]:
    """A kwire whose members heartbeat often, or the broker that `--against` names, with which this takes longer."""
    from kwire.testing.process import BrokerProcess

    if against:
        yield against
        return
    with BrokerProcess(QUICK) as running:
        yield running


@pytest.fixture
def topics(broker: Any, request: pytest.FixtureRequest) -> TopicFactory:
    return TopicFactory(broker, prefix=request.node.name.replace("[", "-").replace("]", ""))


@contextmanager
def members(bootstrap: str, group: str, *configs: dict[str, object]) -> Iterator[list[Consumer]]:
    """Consumers of a group, closed at the end."""
    base = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumers = [Consumer({**base, **config}) for config in configs]
    try:
        yield consumers
    finally:
        for consumer in consumers:
            consumer.close()


def poll_until(consumers: Sequence[Consumer], holds: Callable[[], bool]) -> list[bytes]:
    """Polls all in turn until the condition holds; the values received meanwhile."""
    values = []
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value())
            else:
                assert error.code() in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART), error
    return values


def shares(consumers: Sequence[Consumer]) -> list[set[int]]:
    return [{partition.partition for partition in consumer.assignment()} for consumer in consumers]


def produce(bootstrap: str, topic: str, partitions: int, each: int = 1) -> list[bytes]:
    """Records spread over the partitions; their values."""
    producer = Producer({"bootstrap.servers": bootstrap})
    values = [b"%s-%d" % (topic.encode(), number) for number in range(partitions * each)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(PATIENCE) == 0
    return values


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_share_and_take_over(broker: Any, topics: TopicFactory, assignor: str) -> None:
    topic = topics(partitions=6)
    wish = {"group.remote.assignor": assignor}
    with members(broker.bootstrap, topic, wish, wish, wish) as consumers:
        one, two, three = consumers
        one.subscribe([topic])
        poll_until([one], lambda: shares([one]) == [set(range(6))])
        two.subscribe([topic])
        three.subscribe([topic])
        poll_until(consumers, lambda: sorted(map(len, shares(consumers))) == [2, 2, 2])
        assert set.union(*shares(consumers)) == set(range(6))
        three.close()
        poll_until([one, two], lambda: sorted(map(len, shares([one, two]))) == [3, 3])


def test_a_member_goes_on_where_the_last_one_stopped(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=2)
    first = produce(broker.bootstrap, topic, 2, each=3)
    received: list[bytes] = []
    with members(broker.bootstrap, topic, {}) as (consumer,):
        consumer.subscribe([topic])
        while len(received) < len(first):
            messages = consumer.consume(1, PATIENCE)
            assert messages
            received += [message.value() for message in messages]
        consumer.commit(asynchronous=False)
    assert sorted(received) == sorted(first)
    second = produce(broker.bootstrap, topic, 2)
    with members(broker.bootstrap, topic, {}) as (consumer,):
        consumer.subscribe([topic])
        messages = []
        while len(messages) < len(second):
            more = consumer.consume(1, PATIENCE)
            assert more
            messages += more
        assert messages[0].offset() == 3
        assert [position.offset for position in consumer.committed([TopicPartition(topic, 0)], PATIENCE)] == [3]


def test_topics_by_regular_expression(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=1)
    with members(broker.bootstrap, topic, {}) as (consumer,):
        consumer.subscribe([f"^{topic}.*"])
        poll_until([consumer], lambda: len(consumer.assignment()) == 1)


def test_more_partitions_are_noticed(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with members(broker.bootstrap, topic, {}) as (consumer,):
        consumer.subscribe([topic])
        poll_until([consumer], lambda: shares([consumer]) == [{0}])
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(PATIENCE)
        poll_until([consumer], lambda: shares([consumer]) == [{0, 1, 2}])


def test_a_static_member_comes_back_to_its_partitions(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=4)
    names = [{"group.instance.id": name} for name in ("a", "b")]
    with members(broker.bootstrap, topic, *names) as (one, two):
        one.subscribe([topic])
        two.subscribe([topic])
        poll_until([one, two], lambda: sorted(map(len, shares([one, two]))) == [2, 2])
        before = shares([two])
        two.close()
        with members(broker.bootstrap, topic, names[1]) as (again,):
            again.subscribe([topic])
            poll_until([one, again], lambda: len(again.assignment()) == 2)
            assert shares([again]) == before


def test_an_admin_sees_the_group(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with members(broker.bootstrap, topic, {"client.id": "reader"}) as (consumer,):
        consumer.subscribe([topic])
        poll_until([consumer], lambda: len(consumer.assignment()) == 2)
        described = admin.describe_consumer_groups([topic])[topic].result(PATIENCE)
        assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
        (member,) = described.members
        assert member.client_id == "reader"
        assert {partition.partition for partition in member.assignment.topic_partitions} == {0, 1}
        listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(PATIENCE)
        assert topic in {group.group_id for group in listed.valid}


def test_a_group_changes_over_and_back_while_it_runs(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=4)
    classic = {"group.protocol": "classic", "session.timeout.ms": 6000, "heartbeat.interval.ms": 100}
    with members(broker.bootstrap, topic, classic, classic) as old:
        for consumer in old:
            consumer.subscribe([topic])
        poll_until(old, lambda: sorted(map(len, shares(old))) == [2, 2])
        with members(broker.bootstrap, topic, {}) as new:
            everybody = [*old, *new]
            new[0].subscribe([topic])
            poll_until(everybody, lambda: sorted(map(len, shares(everybody))) == [1, 1, 2])
            assert set.union(*shares(everybody)) == set(range(4))
            old[1].close()
            remaining = [old[0], new[0]]
            poll_until(remaining, lambda: sorted(map(len, shares(remaining))) == [2, 2])
        poll_until(old[:1], lambda: shares(old[:1]) == [set(range(4))])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        described = admin.describe_consumer_groups([topic])[topic].result(PATIENCE)
        assert described.type == ConsumerGroupType.CLASSIC
