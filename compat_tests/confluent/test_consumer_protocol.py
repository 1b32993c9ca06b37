"""librdkafka in groups of the consumer protocol (`group.protocol=consumer`, KIP-848): what the classic one has not.

What both have is in `compat_tests/groups`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError
from confluent_kafka.admin import AdminClient, NewPartitions

from compat_tests.confluent.driver import ConfluentAdmin
from compat_tests.groups.consumer import LONG_SESSION_MS, broker_settings
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess

PATIENCE = 60.0
"""Seconds for a group to settle."""


@pytest.fixture(scope="module")
def broker(against: Any) -> Iterator[Any]:
    """A kwire whose members heartbeat often, or the broker that `--against` names, with which this takes longer."""
    if against:
        yield against
        return
    with BrokerProcess(broker_settings(LONG_SESSION_MS)) as running:
        yield running


@pytest.fixture
def topics(broker: Any, request: pytest.FixtureRequest) -> TopicFactory:
    return TopicFactory(broker, prefix=request.node.name)


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


def poll_until(consumers: Sequence[Consumer], holds: Callable[[], bool]) -> None:
    """Polls all in turn until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            message = consumer.poll(0.05)
            error = None if message is None else message.error()
            assert error is None or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART, error


def shares(consumers: Sequence[Consumer]) -> list[set[int]]:
    return [{partition.partition for partition in consumer.assignment()} for consumer in consumers]


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
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert admin.describe_consumer_groups([topic])[topic].result(PATIENCE).partition_assignor == assignor
        three.close()
        poll_until([one, two], lambda: sorted(map(len, shares([one, two]))) == [3, 3])


def test_topics_by_regular_expression(broker: Any, topics: TopicFactory) -> None:
    """Those that match, when they come and go, and no others."""
    one, other, later = topics(), topics(), topics.name()
    with members(broker.bootstrap, one, {}) as (consumer,):

        def topics_are(*names: str) -> Callable[[], bool]:
            return lambda: {partition.topic for partition in consumer.assignment()} == set(names)

        consumer.subscribe([f"^({one}|{later})$"])
        poll_until([consumer], topics_are(one))
        admin = ConfluentAdmin(broker.bootstrap)
        admin.create_topic(later)
        poll_until([consumer], topics_are(one, later))
        admin.delete_topic(one)
        poll_until([consumer], topics_are(later))
        assert other in admin.topic_names()


def test_more_partitions_are_noticed(broker: Any, topics: TopicFactory) -> None:
    topic = topics(partitions=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with members(broker.bootstrap, topic, {}) as (consumer,):
        consumer.subscribe([topic])
        poll_until([consumer], lambda: shares([consumer]) == [{0}])
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(PATIENCE)
        poll_until([consumer], lambda: shares([consumer]) == [{0, 1, 2}])


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
