"""`kwire groups` against a running broker, with a member by confluent-kafka in a group of either protocol."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer

from compat_tests.cases import BASE_TIME, numbered
from compat_tests.driver import TIMEOUT
from compat_tests.kwire_cli.cli import Cli
from compat_tests.kwire_client.driver import KwireDriver

RECORDS = 20
"""In the topic's first partition, a millisecond apart; the second one has none."""
READ = 7


@pytest.fixture
def topic(kwire_broker: Any, kwire_topic_factory: Callable[..., str]) -> str:
    name = kwire_topic_factory(partitions=2)
    KwireDriver(kwire_broker.bootstrap).produce(name, numbered(RECORDS))
    return name


@contextmanager
def member(cli: Cli, group: str, topic: str, protocol: str) -> Iterator[None]:
    """A member of the group that has read READ records, and committed that."""
    settings = {
        "bootstrap.servers": cli.bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "client.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + TIMEOUT
        read = 0
        while read < READ:
            assert time.monotonic() < deadline, f"{read} records were read"
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                read += 1
        consumer.commit(message=message, asynchronous=False)
        yield
    finally:
        consumer.close()


def eventually(check: Callable[[], None]) -> None:
    """Calls it until it passes: a client that closes does not wait for the answer to its farewell."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def state(cli: Cli, group: str) -> Any:
    """Type and state, as `list` shows them."""
    return next(tuple(line.split("\t")[1:]) for line in cli.lines("groups", "list") if line.startswith(f"{group}\t"))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_life_of_a_group(cli: Cli, topic: str, new_name: Callable[[], str], protocol: str) -> None:
    group = new_name()
    with member(cli, group, topic, protocol):
        assert state(cli, group) == (protocol, "consumer", "Stable")
        rows = [line.split("\t") for line in cli.lines("groups", "describe", group)]
        name = rows[0][6]
        owner = [name, "/127.0.0.1", "reader"]
        assert rows == [
            [group, topic, "0", str(READ), str(RECORDS), str(RECORDS - READ), *owner],
            [group, topic, "1", "", "0", "", *owner],
        ]
        assert cli.lines("groups", "describe", "--members", group) == [
            f"{group}\t{name}\t\t/127.0.0.1\treader\t{topic}:0,1"
        ]
        reset = ["groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute"]
        assert b"can't be set while it has members; its state is Stable" in cli(*reset, code=1).stderr
        assert b"NON_EMPTY_GROUP" in cli("groups", "delete", group, code=1).stderr
        assert b"GROUP_SUBSCRIBED_TO_TOPIC" in cli("groups", "delete-offsets", group, "-t", topic, code=1).stderr

    def empty() -> None:
        assert state(cli, group) == (protocol, "consumer", "Empty")

    eventually(empty)
    (described,) = cli.json("groups", "describe", group)
    assert (described["type"], described["state"], described["members"]) == (protocol, "Empty", [])
    assert [(at["partition"], at["offset"], at["lag"]) for at in described["offsets"]] == [(0, READ, RECORDS - READ)]
    cli("groups", "delete", group)
    assert b"GROUP_ID_NOT_FOUND" in cli("groups", "describe", group, code=1).stderr
    assert b"GROUP_ID_NOT_FOUND" in cli("groups", "delete", group, code=1).stderr
    cli("groups", "delete", group, "--if-exists")


def test_every_way_to_reset(cli: Cli, topic: str, new_name: Callable[[], str]) -> None:
    """Of a group that the first of them begins."""
    group = new_name()

    def reset(*options: str) -> list[tuple[str, ...]]:
        """(old, new) of each partition."""
        lines = cli.lines("groups", "reset-offsets", group, *options)
        return [tuple(line.split("\t")[3:]) for line in lines]

    assert reset("-t", topic, "--to-latest") == [("", str(RECORDS)), ("", "0")]
    assert reset("-t", topic, "--to-current", "--execute") == [("", str(RECORDS)), ("", "0")]
    cli("groups", "delete-offsets", group, "-t", f"{topic}:1")
    assert reset("--all-topics", "--to-earliest", "--execute") == [(str(RECORDS), "0")]
    assert reset("--all-topics", "--to-offset", "5", "--execute") == [("0", "5")]
    assert reset("--all-topics", "--shift-by", "3", "--execute") == [("5", "8")]
    assert reset("--all-topics", "--shift-by", "-10", "--execute") == [("8", "0")]
    assert reset("--all-topics", "--to-datetime", str(BASE_TIME + 12), "--execute") == [("0", "12")]
    assert reset("--all-topics", "--by-duration", "PT1H", "--execute") == [("12", str(RECORDS))]
    assert reset("--all-topics", "--to-offset", "4711", "--execute") == [(str(RECORDS), str(RECORDS))]
    assert reset("-t", f"{topic}:0", "--to-earliest", "--execute") == [(str(RECORDS), "0")]
    assert reset("-t", topic, "--to-latest", "--execute") == [("0", str(RECORDS)), ("", "0")]
    cli("groups", "delete", group)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_reader_goes_on_where_it_was_reset_to(
    cli: Cli, topic: str, new_name: Callable[[], str], protocol: str
) -> None:
    group = new_name()
    with member(cli, group, topic, protocol):
        pass

    def reset() -> None:
        cli("groups", "reset-offsets", group, "--all-topics", "--to-offset", "3", "--execute")

    eventually(reset)
    with member(cli, group, topic, protocol):
        (described,) = cli.json("groups", "describe", group)
        assert described["offsets"][0]["offset"] == 3 + READ


def test_consuming_goes_on_where_it_stopped(cli: Cli, topic: str, new_name: Callable[[], str]) -> None:
    group = new_name()
    in_group = ["consume", topic, "--group", group, "-f", r"%o\n"]
    assert cli.lines(*in_group, "-c", "3") == ["0", "1", "2"]
    assert cli.lines(*in_group, "-c", "4") == ["3", "4", "5", "6"]
    assert cli.lines(*in_group, "--exit") == [str(offset) for offset in range(READ, RECORDS)]
    assert cli.lines(*in_group, "--exit", "-o", "end") == []
    assert state(cli, group) == ("classic", "consumer", "Empty")
    cli("groups", "reset-offsets", group, "--all-topics", "--to-offset", "18", "--execute")
    assert cli.lines(*in_group, "--exit") == ["18", "19"]
    assert cli.lines("consume", topic, "-G", new_name(), "--exit", "-o", "end") == []


def test_consumers_share_a_topic_and_take_over(
    cli: Cli, kwire_topic_factory: Callable[..., str], new_name: Any
) -> None:
    """Each gets a partition; when one ends, the other gets both."""
    group, topic = new_name(), kwire_topic_factory(partitions=2)
    consume = ["consume", topic, "--group", group, "-f", r"%p %s\n"]

    def shares() -> list[str]:
        return sorted(line.split("\t")[5] for line in cli.lines("groups", "describe", "--members", group))

    def shared() -> None:
        assert shares() == [f"{topic}:0", f"{topic}:1"]

    def alone() -> None:
        assert shares() == [f"{topic}:0,1"]

    def produce(value: bytes) -> None:
        for partition in ("0", "1"):
            cli("produce", topic, "-p", partition, input=value + b"\n")

    with cli.running(*consume) as first, cli.running(*consume) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        eventually(shared)
        produce(b"one")
        assert {first.stdout.readline(), second.stdout.readline()} == {b"0 one\n", b"1 one\n"}
        first.send_signal(signal.SIGINT)
        assert first.wait(TIMEOUT) == 130
        eventually(alone)
        produce(b"two")
        assert {second.stdout.readline(), second.stdout.readline()} == {b"0 two\n", b"1 two\n"}
        second.send_signal(signal.SIGINT)
        assert second.wait(TIMEOUT) == 130
    assert [line.split("\t")[2:6] for line in cli.lines("groups", "describe", group)] == [
        ["0", "2", "2", "0"],
        ["1", "2", "2", "0"],
    ]
