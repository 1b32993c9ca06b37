"""Consumers of every client in groups of the classic protocol: they share, leave, crash, commit and come again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Record
from compat_tests.groups.consumer import Settings
from compat_tests.groups.member import Member, members, wait_all, wait_for_shares
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess

CLIENTS = ("confluent", "kafka_python", "aiokafka")
COOPERATIVE = ("confluent", "kafka_python")
PARTITIONS = 6


@pytest.fixture(params=CLIENTS)
def settings(request: pytest.FixtureRequest, kwire_broker: Any, kwire_topic_factory: TopicFactory) -> Settings:
    """Of a consumer of a topic with six partitions, the group named as the topic."""
    topic = kwire_topic_factory(partitions=PARTITIONS)
    return Settings(request.param, kwire_broker.bootstrap, topic, topic)


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


def test_three_share_six_partitions_and_one_leaves(settings: Settings) -> None:
    with members(settings, settings, settings) as group:
        wait_for_shares(group, PARTITIONS)
        values = fill(settings, 5)
        wait_all(group, lambda: values <= {value for member in group for value in member.values})
        assert sum(len(member.records) for member in group) == len(values)
        one, two, three = group
        three.close()
        wait_for_shares([one, two], PARTITIONS)


def test_the_partitions_of_one_that_crashes_go_to_the_others(settings: Settings) -> None:
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
        uncommitted = fill(settings, 1, begin=5)
        member.wait(has_read(member, uncommitted))
        if how == "commit_later":
            member.tell("commit")
            uncommitted = fill(settings, 1, begin=6)
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
        member.close()
    second = fill(settings, 1, begin=5)
    with members(settings) as (member,):
        member.wait(has_read(member, second))
        assert set(member.values) == second


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


def test_static_members_come_again_to_what_they_had(settings: Settings) -> None:
    one, two, three = (replace(settings, instance_id=name) for name in ("one", "two", "three"))
    with members(one, two, three) as group:
        wait_for_shares(group, PARTITIONS)
        before = [set(member.assigned) for member in group]
        group[2].kill()
        with members(three) as (again,):
            again.wait(lambda: again.assigned == before[2])
            assert [member.assigned for member in group[:2]] == before[:2]


@pytest.mark.parametrize("settings", COOPERATIVE, indirect=True)
def test_cooperative_members_keep_what_they_need_not_give(settings: Settings) -> None:
    settings = replace(settings, strategy="cooperative-sticky")
    with members(settings) as (one,):
        one.wait(lambda: len(one.assigned) == PARTITIONS)
        with members(settings) as (two,):
            wait_for_shares([one, two], PARTITIONS)
            kept = set(one.assigned)
            two.close()
            one.wait(lambda: len(one.assigned) == PARTITIONS)
            assert kept <= one.assigned


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_commits_survive_the_broker(client: str, how: str, kwire_broker_factory: Callable[..., BrokerProcess]) -> None:
    broker = kwire_broker_factory()
    ConfluentAdmin(broker.bootstrap).create_topic("topic", partitions=PARTITIONS)
    settings = Settings(client, broker.bootstrap, "group", "topic")
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
