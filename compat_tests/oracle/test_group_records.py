"""What groups leave in __consumer_offsets, record by record."""

from __future__ import annotations

import pytest

from compat_tests.oracle import internal_topics
from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import (
    PREPARING,
    Client,
    await_group,
    commit_request,
    settle_groups,
    stable,
)
from compat_tests.oracle.sides import Side
from kwire.metadata.names import CONSUMER_OFFSETS
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.schema import Message

pytestmark = pytest.mark.xdist_group("oracle")


def end(side: Side) -> int:
    return internal_topics.end(side, CONSUMER_OFFSETS)


def record_what_is_written(side: Side, since: int, *groups: str) -> None:
    internal_topics.record_what_is_written(side, CONSUMER_OFFSETS, GROUP_RECORD_TYPES, since, _group, *groups)


def _group(key: Message) -> str:
    return getattr(key, "group", None) or getattr(key, "group_id", "")


def test_a_group_from_its_beginning_to_its_end(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = side.topic(), side.name("group")
        begin = end(side)
        one = Client(side, group, "one")
        stable(one)
        two = Client(side, group, "two", instance_id="static")
        two.start_join(protocols=("range", "sticky"))
        await_group(side, group, PREPARING, 2)
        one.leave()
        two.joined()
        two.sync({two: b"of two"})
        two.commit(topic, 5)
        again = Client(side, group, "again", instance_id="static")
        again.join(protocols=("range", "sticky"))
        again.commit(topic, 7, metadata="words", leader_epoch=0)
        again.ask(again.join_request(protocols=("range",), member_id="nobody", group_instance_id=None))
        again.leave()
        side.ask(DeleteGroupsRequest(groups_names=[group]))
        record_what_is_written(side, begin, group)

    both.agree(scenario)


def test_commits_of_all_versions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = side.topic(partitions=2), side.name("group")
        begin = end(side)
        for version in range(2, 11):
            side.ask(commit_request(side, group, {topic: [(0, version), (1, version)]}, version), version)
            if version <= 4:
                request = commit_request(side, group, {topic: [(1, 0)]}, version, retention_time_ms=60_000)
                side.ask(request, version, note="with a retention")
        record_what_is_written(side, begin, group)

    both.agree(scenario)


def test_groups_whose_first_member_may_not_join_or_says_no_more(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        begin = end(side)
        names = [side.name(label) for label in ("refused", "given", "old")]
        refused, given, old = (Client(side, name, "one") for name in names)
        refused.ask(refused.join_request(protocols=()))
        given.ask(given.join_request())
        old.join(0)
        record_what_is_written(side, begin, *names)

    both.agree(scenario)
