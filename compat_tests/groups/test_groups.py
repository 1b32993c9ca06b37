"""Consumers of every client in groups: they share, leave, crash, commit and come again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
from compat_tests.groups.consumer import LONG_SESSION_MS, SHORT_SESSION_MS, Settings, broker_settings
from compat_tests.groups.member import Member, members, wait_all, wait_for_shares
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess

CLASSIC = [("confluent", "classic"), ("kafka_python", "classic"), ("aiokafka", "classic")]
"""Clients and protocols of their groups."""
CONSUMER = [("confluent", "consumer")]
COOPERATIVE = [("confluent", "classic"), ("kafka_python", "classic")]
PARTITIONS = 6

SettingsWith = Callable[[int], Settings]


@pytest.fixture(params=CLASSIC + CONSUMER, ids="-".join)
def settings_with(
    request: pytest.FixtureRequest,
    kwire_broker: Any,
    broker_with: Callable[..., Any],
    kwire_topic_factory: TopicFactory,
) -> SettingsWith:
    """Of a consumer of a topic with six partitions, the group named as the topic, with sessions of so many ms."""
    client, protocol = request.param

    def make(session_ms: int) -> Settings:
        broker = kwire_broker if protocol == "classic" else broker_with(broker_settings(session_ms))
        topic = kwire_topic_factory(partitions=PARTITIONS, broker=broker)
        return Settings(client, broker.bootstrap, topic, topic, protocol, session_ms)

    return make


@pytest.fixture
def settings(settings_with: SettingsWith) -> Settings:
    return settings_with(LONG_SESSION_MS)


def fill(settings: Settings, each: int, begin: int = 0) -> set[str]:
    """Adds records to every partition; returns the values."""
    records = [
        Record(value=b"%d in %d" % (number, partition), partition=partition)
        for number in range(begin, begin + each)
        for partition in range(PARTITIONS)
    ]
    ConfluentDriver(settings.bootstrap).produce(settings.topic, records)
    return {record.value.decode() for record in records if record.value is not None}


def has_read(member: Member, values: set[str]) -> Callable[[], bool]:
    return lambda: values <= set(member.values)


def wait_until_committed(settings: Settings, offset: int) -> None:
    """Until the group has committed that offset in every partition."""
    driver, deadline = ConfluentDriver(settings.bootstrap), time.monotonic() + TIMEOUT
    while (committed := driver.committed(settings.group, settings.topic, PARTITIONS)) != [offset] * PARTITIONS:
        assert time.monotonic() < deadline, committed
        time.sleep(0.05)


def test_three_share_six_partitions_and_one_leaves(settings: Settings) -> None:
    with members(settings, settings, settings) as group:
        wait_for_shares(group, PARTITIONS)
        values = fill(settings, 5)
        wait_all(group, lambda: values <= {value for member in group for value in member.values})
        assert sum(len(member.records) for member in group) == len(values)
        one, two, three = group
        three.close()
        wait_for_shares([one, two], PARTITIONS)


def test_the_partitions_of_one_that_crashes_go_to_the_others(settings_with: SettingsWith) -> None:
    settings = settings_with(SHORT_SESSION_MS)
    with members(settings, settings, settings) as group:
        wait_for_shares(group, PARTITIONS)
        one, two, three = group
        three.kill()
        wait_for_shares([one, two], PARTITIONS)
        values = fill(settings, 2)
        wait_all([one, two], lambda: values <= {*one.values, *two.values})


@pytest.mark.parametrize("how", ["commit", "commit_later"])
def test_a_consumer_goes_on_where_the_last_one_committed(settings: Settings, how: str) -> None:
    first = fill(settings, 5)
    with members(settings) as (member,):
        member.wait(has_read(member, first))
        member.tell(how)
        wait_until_committed(settings, 5)
        uncommitted = fill(settings, 1, begin=5)
        member.wait(has_read(member, uncommitted))
        member.close()
    with members(settings) as (member,):
        member.wait(has_read(member, uncommitted))
        assert set(member.values) == uncommitted


def test_commits_by_themselves(settings: Settings) -> None:
    settings = replace(settings, auto_commit=True)
    first = fill(settings, 5)
    with members(settings) as (member,):
        member.wait(has_read(member, first))
        wait_until_committed(settings, 5)
        second = fill(settings, 1, begin=5)
        member.wait(has_read(member, second))
        member.close()  # which commits as well
    third = fill(settings, 1, begin=6)
    with members(settings) as (member,):
        member.wait(has_read(member, third))
        assert set(member.values) == third


def test_pausing_and_seeking(settings: Settings) -> None:
    first = fill(settings, 5)
    with members(settings) as (member,):
        member.wait(has_read(member, first))
        member.tell("pause 3")
        second = fill(settings, 1, begin=5)
        member.wait(has_read(member, second - {"5 in 3"}))
        assert "5 in 3" not in member.values
        member.tell("resume 3")
        member.wait(has_read(member, second))
        member.tell("seek 0 2")
        member.wait(lambda: member.values.count("5 in 0") == 2)
        assert [offset for partition, offset, _ in member.records if partition == 0] == [0, 1, 2, 3, 4, 5, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("settings_with", "end"),
    [
        *((member, "close") for member in CLASSIC + CONSUMER),
        # In the consumer protocol an instance that did not say farewell keeps its place until its session ends.
        *((member, "kill") for member in CLASSIC),
    ],
    indirect=["settings_with"],
)
def test_static_members_come_again_to_what_they_had(settings: Settings, end: str) -> None:
    """And those that stay do not notice."""
    one, two, three = (replace(settings, instance_id=name) for name in ("one", "two", "three"))
    with members(one, two, three) as (first, second, third):
        wait_for_shares([first, second, third], PARTITIONS)
        before, history = third.assigned, [list(first.assignments), list(second.assignments)]
        third.kill() if end == "kill" else third.close()
        with members(three) as (again,):
            again.wait(lambda: again.assigned == before)
            values = fill(settings, 2)
            wait_all([first, second, again], lambda: values <= {*first.values, *second.values, *again.values})
            assert [first.assignments, second.assignments] == history


@pytest.mark.parametrize("settings_with", COOPERATIVE, ids="-".join, indirect=True)
def test_cooperative_members_keep_what_they_need_not_give(settings: Settings) -> None:
    settings = replace(settings, strategy="cooperative-sticky")
    with members(settings) as (one,):
        one.wait(lambda: len(one.assigned) == PARTITIONS)
        with members(settings) as (two,):
            wait_for_shares([one, two], PARTITIONS)
            kept = one.assigned
            two.close()
            one.wait(lambda: len(one.assigned) == PARTITIONS)
        alone = one.assignments.index(set(range(PARTITIONS)))
        assert all(kept <= assigned for assigned in one.assignments[alone:])


@pytest.mark.parametrize(("client", "protocol"), CLASSIC + CONSUMER)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_commits_survive_the_broker(
    client: str, protocol: str, how: str, kwire_broker_factory: Callable[..., BrokerProcess]
) -> None:
    broker = kwire_broker_factory(broker_settings(SHORT_SESSION_MS))
    ConfluentAdmin(broker.bootstrap).create_topic("topic", partitions=PARTITIONS)
    settings = Settings(client, broker.bootstrap, "group", "topic", protocol, SHORT_SESSION_MS)
    first = fill(settings, 20)
    with members(settings) as (member,):
        member.wait(has_read(member, first))
        member.tell("commit")
        broker.kill() if how == "kill" else broker.stop()
        broker.restart()
        second = fill(settings, 1, begin=20)
        member.wait(has_read(member, second))  # it goes on by itself
    third = fill(settings, 1, begin=21)
    with members(settings) as (member,):
        member.wait(has_read(member, third))
        assert set(member.values) == second | third
