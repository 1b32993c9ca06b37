"""Each client writes in transactions, and reads what comes of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
from compat_tests.transactions.aiokafka import AiokafkaClient
from compat_tests.transactions.client import Client, Fenced
from compat_tests.transactions.confluent import ConfluentClient
from compat_tests.transactions.kafka_python import KafkaPythonClient

CLIENTS = {"confluent-kafka": ConfluentClient, "aiokafka": AiokafkaClient, "kafka-python": KafkaPythonClient}
PARTITIONS = 3
LOOKS_OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}
"""How often a coordinator looks for transactions that have timed out, in ms."""


@pytest.fixture(params=CLIENTS.values(), ids=CLIENTS.keys())
def library(request: pytest.FixtureRequest) -> type[Client]:
    return request.param


@pytest.fixture
def client(library: type[Client], kwire_broker: Any) -> Client:
    return library(kwire_broker.bootstrap)


@pytest.fixture
def plain(kwire_broker: Any) -> ConfluentDriver:
    """Writes without transactions."""
    return ConfluentDriver(kwire_broker.bootstrap)


def test_a_commit_shows_all_partitions(
    client: Client, kwire_topic_factory: Callable[..., str], new_name: Callable[[], str]
) -> None:
    topic = kwire_topic_factory(partitions=PARTITIONS)
    sent = [b"%d" % number for number in range(PARTITIONS)]
    with client.producer(new_name()) as producer:
        producer.begin()
        for partition, value in enumerate(sent):
            producer.send(topic, value, partition)
        assert client.read(topic, partitions=PARTITIONS) == []
        assert sorted(client.read(topic, "read_uncommitted", PARTITIONS)) == sent
        producer.commit()
    assert sorted(client.read(topic, partitions=PARTITIONS)) == sent


def test_an_abort_hides_from_those_who_read_committed_records(
    client: Client, plain: ConfluentDriver, kwire_topic: str, new_name: Callable[[], str]
) -> None:
    with client.producer(new_name()) as producer:
        for value, end in ((b"1", producer.commit), (b"2", producer.abort), (b"3", producer.commit)):
            producer.begin()
            producer.send(kwire_topic, value)
            plain.produce(kwire_topic, [Record(value=b"plain " + value)])
            end()
    assert client.read(kwire_topic) == [b"1", b"plain 1", b"plain 2", b"3", b"plain 3"]
    assert client.read(kwire_topic, "read_uncommitted") == [b"1", b"plain 1", b"2", b"plain 2", b"3", b"plain 3"]


def test_nothing_behind_an_open_transaction_is_shown(
    client: Client, plain: ConfluentDriver, kwire_topic: str, new_name: Callable[[], str]
) -> None:
    plain.produce(kwire_topic, [Record(value=b"before")])
    with client.producer(new_name()) as open_one, client.producer(new_name()) as done:
        open_one.begin()
        open_one.send(kwire_topic, b"open")
        done.begin()
        done.send(kwire_topic, b"done")
        done.commit()
        plain.produce(kwire_topic, [Record(value=b"after")])
        assert client.read(kwire_topic) == [b"before"]
        assert client.read(kwire_topic, "read_uncommitted") == [b"before", b"open", b"done", b"after"]
        open_one.abort()
    assert client.read(kwire_topic) == [b"before", b"done", b"after"]


def test_offsets_are_committed_with_the_transaction(
    client: Client, kwire_topic: str, new_name: Callable[[], str]
) -> None:
    group = new_name()
    with client.producer(new_name()) as producer:
        for offset, end in ((5, producer.commit), (7, producer.abort), (None, producer.commit)):
            producer.begin()
            producer.send(kwire_topic, b"%r" % offset)
            if offset is not None:
                producer.send_offsets(group, kwire_topic, {0: offset})
            end()
            assert client.committed(group, kwire_topic) == 5
        producer.begin()
        producer.send_offsets(group, kwire_topic, {0: 9})
        producer.commit()
    assert client.committed(group, kwire_topic) == 9
    assert client.read(kwire_topic) == [b"5", b"None"]


def test_a_zombie_is_fenced(client: Client, kwire_topic: str, new_name: Callable[[], str]) -> None:
    name = new_name()
    with client.producer(name) as zombie:
        zombie.begin()
        zombie.send(kwire_topic, b"zombie")
        with client.producer(name) as successor:
            successor.begin()
            successor.send(kwire_topic, b"successor")
            with pytest.raises(Fenced):
                zombie.commit()
            successor.commit()
    assert client.read(kwire_topic) == [b"successor"]


def test_a_successor_aborts_what_a_lost_producer_left_open(
    client: Client, kwire_topic: str, new_name: Callable[[], str]
) -> None:
    name = new_name()
    for value in (b"first", b"second", b"third"):
        with client.producer(name) as producer:
            producer.begin()
            producer.send(kwire_topic, value)
    with client.producer(name) as producer:
        assert client.read(kwire_topic) == []
        producer.begin()
        producer.send(kwire_topic, b"last")
        producer.commit()
    assert client.read(kwire_topic) == [b"last"]
    assert client.read(kwire_topic, "read_uncommitted") == [b"first", b"second", b"third", b"last"]


def test_many_transactions_follow_each_other(
    client: Client, kwire_topic_factory: Callable[..., str], new_name: Callable[[], str]
) -> None:
    topic = kwire_topic_factory(partitions=PARTITIONS)
    committed = []
    with client.producer(new_name()) as producer:
        for number in range(60):
            producer.begin()
            for partition in range(number % (PARTITIONS + 1)):
                producer.send(topic, b"%d" % number, partition)
            if number % 5 == 3:
                producer.abort()
            else:
                producer.commit()
                committed += [b"%d" % number] * (number % (PARTITIONS + 1))
    assert sorted(client.read(topic, partitions=PARTITIONS)) == sorted(committed)


def test_a_transaction_that_takes_too_long_is_aborted(
    library: type[Client],
    broker_with: Callable[..., Any],
    kwire_topic_factory: Callable[..., str],
    new_name: Callable[[], str],
) -> None:
    broker = broker_with(LOOKS_OFTEN)
    client, topic = library(broker.bootstrap), kwire_topic_factory(broker=broker)
    with client.producer(new_name(), timeout_ms=5000) as producer:
        producer.begin()
        producer.send(topic, b"too long")
        ConfluentDriver(broker.bootstrap).produce(topic, [Record(value=b"after")])
        deadline = time.monotonic() + TIMEOUT
        while client.read(topic) != [b"after"]:
            assert time.monotonic() < deadline, "still open"
        with pytest.raises(Fenced):
            producer.commit()
    assert client.read(topic, "read_uncommitted") == [b"too long", b"after"]
