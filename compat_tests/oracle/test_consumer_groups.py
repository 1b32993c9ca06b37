"""Groups of the consumer protocol: heartbeats, what is assigned, what is refused, what is kept in the log."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.consumer_groups import Member, described, eventually, known_topic
from compat_tests.oracle.groups import Client, commit_request, settle_groups
from compat_tests.oracle.sides import Side
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES
from kwire.protocol.coordinator_records.serde import decode_record
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records

pytestmark = pytest.mark.xdist_group("oracle")

INTERNAL = "__consumer_offsets"


def test_members_come_share_and_go(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 4), side.name("group")
        one, two = Member(side, group, "one", topic), Member(side, group, "two", topic, rack_id="rack")
        one.join()
        described(side, group, "stable")
        two.join()
        described(side, group, "reconciling")
        one.beat("hears what to let go of")
        described(side, group, "revoking")
        two.beat("too early")
        one.beat("has let go")
        two.beat("gets it")
        described(side, group, "stable again")
        one.beat("as before")
        one.ask("says nothing")
        one.beat("says all", rebalance_timeout_ms=60_000, subscribed_topic_names=[topic])
        two.leave()
        described(side, group, "assigning")
        one.beat("gets the rest")
        one.leave()
        described(side, group, "empty")
        one.leave()
        two.beat("when all have gone")

    both.agree(scenario)


def test_what_is_refused_at_sight(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 1), side.name("group")
        cases: list[dict[str, Any]] = [
            {"member_id": ""},
            {"member_id": " "},
            {"group_id": ""},
            {"group_id": "\t"},
            {"instance_id": ""},
            {"rack_id": ""},
            {"rebalance_timeout_ms": -1},
            {"topic_partitions": None},
            {"topic_partitions": [TopicPartitions(topic_id=b"x" * 16, partitions=[0])]},
            {"subscribed_topic_names": None},
            {"member_epoch": 1},
            {"member_epoch": 1, "member_id": ""},
            {"member_epoch": -1},
            {"member_epoch": -1, "member_id": ""},
            {"member_epoch": -2},
            {"member_epoch": -2, "instance_id": "static"},
            {"member_epoch": -3},
            {"server_assignor": "sticky"},
            {"server_assignor": ""},
        ]
        for version in range(2):
            for number, case in enumerate(cases):
                if version == 0 and case == {"member_id": ""}:
                    continue  # the coordinator makes an id
                member = Member(side, group, "one", topic)
                fields = {"member_epoch": 0, "topic_partitions": [], **member.fields, **case}
                member.ask(f"case {number}", version, **fields)
        described(side, group, "nobody")

    both.agree(scenario)


@pytest.mark.parametrize(
    "regex",
    [
        "(",
        "[a",
        "a**",
        "*",
        "a|*",
        "(?P<n",
        "(?<n",
        "\\",
        "(?=a)",
        "(?i",
        "a{1001}",
        "a{2,1}",
        "[z-a]",
        "\\1",
        "a)",
        "\\p{X}",
        "(?<=a)",
        "(?<!a)",
        "\\C",
        "(?P<n>a)(?P<n>b)",
    ],
)
def test_regular_expressions_that_are_none(both: Both, regex: str) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 1), side.name("group")
        Member(side, group, "one", topic).join(subscribed_topic_names=[], subscribed_topic_regex=regex)

    both.agree(scenario)


def test_regular_expressions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        one = Member(side, group, "one", topic, subscribed_topic_names=[], subscribed_topic_regex=f"{topic}(x|)")
        one.join()
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id="one", member_epoch=1, topic_partitions=[])
        answer = side.call(request, until=lambda answer: answer.assignment is not None)
        one.epoch, one.has = answer.member_epoch, [0, 1]
        one.beat("has them")
        described(side, group)
        one.beat("wants no more", subscribed_topic_regex="")
        one.beat("has let go")
        described(side, group, "nothing")

    # kwire resolves it before the next heartbeat can come; Apache Kafka needs to be asked until it has.
    both.agree(lambda side: eventually(side, scenario))


@pytest.mark.parametrize("regex", ["[a-z]{1000}" * 15, "\\é", "{?"], ids=["large", "letter", "brace"])
def test_regular_expressions_of_one_side(both: Both, regex: str) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 1), side.name("group")
        odd = Member(side, group, "odd", topic, subscribed_topic_names=[])
        odd.join(subscribed_topic_regex=regex)
        odd.leave()

    both.agree(scenario, "RE2 and RE2/J")


def test_epochs(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        one = Member(side, group, "one", topic)
        one.join()
        for epoch in (1, 3, 100):
            one.ask("in another epoch", member_epoch=epoch, topic_partitions=[])
        Member(side, group, "stranger", topic).ask("nobody knows", member_epoch=2)
        side.ask(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=topic, count=4, assignments=None)], timeout_ms=10_000
            ),
            note="more partitions",
        )
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id="one", member_epoch=2)
        side.call(request, until=lambda answer: answer.error_code or answer.member_epoch == 3)
        owned = [TopicPartitions(topic_id=side.id_of(topic), partitions=[0, 1])]
        one.ask("missed the answer", topic_partitions=owned)
        one.ask("owns what it was never given", topic_partitions=[TopicPartitions(topic_id=b"x" * 16, partitions=[0])])
        one.ask("does not say what it owns")
        one.join()
        described(side, group)

    both.agree(scenario)


def test_static_members(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 4), side.name("group")
        one = Member(side, group, "one", topic, instance_id="a")
        two = Member(side, group, "two", topic, instance_id="b")
        one.join()
        two.join()
        for member in (one, two, one, two):
            member.beat("shares")
        Member(side, group, "three", topic, instance_id="a").join()
        one.join()
        Member(side, group, "three", topic, instance_id="a", member_epoch=3).ask(
            "steals", member_epoch=3, instance_id="a"
        )
        one.leave(-2)
        described(side, group, "one is away")
        one.beat("is away")
        again = Member(side, group, "again", topic, instance_id="a")
        again.join()
        described(side, group, "one is back as another")
        one.beat("is nobody now")
        one.leave()
        one.leave(-2)
        Member(side, group, "x", topic, instance_id="unknown").leave(-2)
        Member(side, group, "x", topic, instance_id="unknown").leave()
        again.leave()
        two.beat("gets the rest")
        described(side, group, "without a")

    both.agree(scenario)


def test_assignors_and_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 4), side.name("group")
        one = Member(side, group, "one", topic, server_assignor="range")
        two = Member(side, group, "two", topic)
        one.join()
        two.join()
        described(side, group, "range")
        for member in (one, two, one, two):
            member.beat("shares")
        two.beat("has a wish", server_assignor="uniform")
        one.beat("has the same", server_assignor="uniform")
        described(side, group, "uniform")
        two.beat("wants nothing", subscribed_topic_names=[])
        two.beat("has let go")
        one.beat("gets all")
        two.beat("wants what is not there", subscribed_topic_names=["no-such-topic"])
        described(side, group, "different subscriptions")

    both.agree(scenario)


def test_a_member_that_joins_without_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        one = Member(side, group, "one", topic, server_assignor="range")
        two = Member(side, group, "two", topic, server_assignor="range")
        one.join()
        two.join()
        for member in (one, one, two):
            member.beat("shares")
        two.leave()
        Member(side, group, "zero", topic, subscribed_topic_names=[], server_assignor="range").join()
        one.beat("gets all")

    both.agree(scenario, "members that join oddly")


def test_a_member_that_becomes_static_under_its_id(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        Member(side, group, "odd", topic).join()
        Member(side, group, "two", topic).join()
        Member(side, group, "odd", topic, instance_id="a").join()

    both.agree(scenario, "members that join oddly")


def test_offsets(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        one = Member(side, group, "one", topic)
        one.join()
        offsets = {topic: [(0, 7)]}

        def commit(member_id: str, epoch: int, version: int = 9, **fields: Any) -> None:
            request = commit_request(
                side, group, offsets, version, member_id=member_id, generation_id_or_member_epoch=epoch, **fields
            )
            side.ask(request, version, note=f"{member_id} {epoch}")

        for version in range(2, 11):
            commit("one", 2, version)
        for member_id, epoch in (("one", 1), ("one", 3), ("one", -1), ("one", 0), ("stranger", 2), ("", -1), ("", 2)):
            commit(member_id, epoch)
        commit("one", 2, group_instance_id="static")
        for member_id, epoch in (
            ("one", 2),
            ("one", 1),
            ("one", 3),
            ("one", -1),
            ("stranger", 2),
            (None, -1),
            ("", -1),
        ):
            for version in (9, 10):
                name = {"topic_id": side.id_of(topic)} if version == 10 else {"name": topic}
                fetched = OffsetFetchRequestTopics(**name, partition_indexes=[0, 1])
                wanted = OffsetFetchRequestGroup(
                    group_id=group, member_id=member_id, member_epoch=epoch, topics=[fetched]
                )
                side.ask(OffsetFetchRequest(groups=[wanted]), version, note=f"{member_id} {epoch}")
        one.leave()
        commit("one", 2)
        commit("", -1)

    both.agree(scenario)


def test_what_admins_see(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")

        def listed(note: str, **filters: list[str]) -> None:
            answer = side.call(ListGroupsRequest(**filters))
            answer.groups = [found for found in answer.groups if found.group_id == group]
            side.record_response(f"ListGroups {note}", answer)

        side.ask(ConsumerGroupDescribeRequest(group_ids=["", "no-such-group", group]), note="none")
        one = Member(side, group, "one", topic)
        one.join()
        for version in range(7):
            side.ask(DescribeGroupsRequest(groups=[group]), version)
        for kind in ("classic", "consumer", "Consumer", "share"):
            listed(kind, types_filter=[kind])
        for state in ("Stable", "stable", "Empty", "Reconciling"):
            listed(state, states_filter=[state])
        side.ask(DeleteGroupsRequest(groups_names=[group]), note="with a member")
        one.leave()
        listed("empty")
        side.ask(DeleteGroupsRequest(groups_names=[group]), note="empty")
        described(side, group, "deleted")
        classic = Client(side, side.name("classic"), "client")
        classic.join()
        described(side, classic.group, "a classic group")
        one.beat("of a classic group", group_id=classic.group, member_epoch=1)
        Member(side, classic.group, "one", topic).leave()

    both.agree(scenario)


def test_the_log_says_the_same(both: Both) -> None:
    """What a group writes, record by record."""

    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 4), side.name("group")
        begin = end_of_log(side)
        one = Member(side, group, "one", topic, server_assignor="uniform")
        two = Member(side, group, "two", topic, instance_id="static", rack_id="rack")
        one.join()
        two.join()
        for member in (one, two, one, two):
            member.beat()
        two.leave(-2)
        Member(side, group, "again", topic, instance_id="static").join()
        one.leave()
        side.record("records", records(side, begin, group))

    both.agree(scenario)


def end_of_log(side: Side) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=INTERNAL, partitions=[partition])])
    return side.call(request).topics[0].partitions[0].offset


def records(side: Side, begin: int, group: str) -> list[str]:
    """The records of the group's state, ids and times replaced."""
    partition = FetchPartition(partition=0, fetch_offset=begin, partition_max_bytes=10_000_000)
    request = FetchRequest(max_bytes=10_000_000, topics=[FetchTopic(topic=INTERNAL, partitions=[partition])])
    blob = side.call(request, 12).responses[0].partitions[0].records
    found = []
    for _, batch in iter_batches(bytes(blob)):
        for record in iter_records(batch):
            assert record.key is not None
            key, value = decode_record(GROUP_RECORD_TYPES, record.key, record.value)
            if getattr(key, "group_id", None) != group:
                continue
            for field in ("assignment_timestamp", "metadata_hash"):
                if getattr(value, field, 0):
                    setattr(value, field, 1)
            text = f"{key} {value}".replace(repr(side.id_of(next(iter(side._ids)))), "<id>")
            found.append(text)
    return found
