"""Groups of the consumer protocol: heartbeats, what is assigned, what is refused, what is kept in the log."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.groups import Client, commit_request, settle_groups, subscription
from compat_tests.oracle.sides import Side
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES
from kwire.protocol.coordinator_records.serde import decode_record
from kwire.protocol.errors import ErrorCode
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
from kwire.protocol.version_prefixed import encode_version_prefixed

pytestmark = pytest.mark.xdist_group("oracle")

INTERNAL = "__consumer_offsets"


class Member:
    """A client of the consumer protocol; what it asks goes into the side's transcript."""

    def __init__(self, side: Side, group: str, name: str, topic: str, **fields: Any) -> None:
        self.side = side
        self.group = group
        self.id = name
        self.topic = topic
        self.fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [topic], **fields}
        self.instance = {key: value for key, value in fields.items() if key == "instance_id"}
        self.epoch = 0
        self.has: list[int] = []

    def join(self, version: int = 1, **fields: Any) -> Any:
        return self._take(
            self.ask("joins", version, **{"member_epoch": 0, "topic_partitions": [], **self.fields, **fields})
        )

    def beat(self, note: str = "", version: int = 1, **fields: Any) -> Any:
        """Says what it has, having let go of what it was told to."""
        owned = [TopicPartitions(topic_id=self.side.id_of(self.topic), partitions=self.has)] if self.has else []
        return self._take(self.ask(note, version, **{"topic_partitions": owned, **self.instance, **fields}))

    def leave(self, epoch: int = -1, version: int = 1) -> Any:
        return self.ask("leaves", version, member_epoch=epoch, **self.instance)

    def ask(self, note: str, version: int = 1, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, **fields}
        )
        return self.side.ask(request, version, note=f"{self.id} {note}".rstrip())

    def _take(self, answer: Any) -> Any:
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = [index for topic in answer.assignment.topic_partitions for index in topic.partitions]
        return answer


def known_topic(side: Side, partitions: int) -> str:
    """A topic that the group coordinator knows of, which in Apache Kafka takes a moment longer than elsewhere."""
    topic, group = side.topic("topic", partitions), side.name("probe")
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="probe",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    side.call(request, until=lambda answer: answer.assignment is not None and answer.assignment.topic_partitions)
    side.call(ConsumerGroupHeartbeatRequest(group_id=group, member_id="probe", member_epoch=-1))
    side.call(DeleteGroupsRequest(groups_names=[group]))
    return topic


def assignment(topic: str, *partitions: int) -> bytes:
    """What a leader hands in for a member."""
    topics = [TopicPartition(topic=topic, partitions=list(partitions))]
    return encode_version_prefixed(ConsumerProtocolAssignment(assigned_partitions=topics), 1)


def described(side: Side, group: str, note: str = "") -> None:
    for version in range(2):
        side.ask(
            ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), version, note=note
        )


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


def eventually(side: Side, scenario: Any) -> None:
    """kwire's answer may come a moment before it has resolved an expression, too."""
    before, side._eventual = side._eventual, True
    try:
        scenario(side)
    finally:
        side._eventual = before


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


def test_a_group_changes_over_and_back(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        old = Client(side, group, "old")
        metadata = subscription(topic)
        old.join(metadata=metadata)
        old.sync({old: assignment(topic, 0, 1)})
        new = Member(side, group, "new", topic)
        new.join()
        answer = old.heartbeat()
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        old.sync({})
        old.join(metadata=metadata)
        old.sync({})
        new.beat("shares")
        old.heartbeat()
        new.beat("has let go")
        old.heartbeat()
        old.join(metadata=metadata)
        old.sync({})
        old.sync({}, protocol_name="roundrobin")
        old.sync({}, protocol_type="connect")
        old.sync({}, generation_id=100)
        old.heartbeat(note="in another generation", generation_id=100)
        old.heartbeat(note="of a new member", member_id="new")
        old.heartbeat(note="of nobody", member_id="nobody")
        old.commit(topic, 5)
        old.commit(topic, 5, note="later", generation_id_or_member_epoch=100)
        members = side.call(ConsumerGroupDescribeRequest(group_ids=[group])).groups[0].members
        side.record("kinds of members", sorted(member.member_type for member in members))
        new.leave()
        old.heartbeat(note="of a classic group again")
        old.join(metadata=metadata)
        old.sync({old: b"mine"})
        old.heartbeat()
        side.ask(DescribeGroupsRequest(groups=[group]))
        old.leave()
        new.join()
        new.leave()
        last = Client(side, group, "last")
        last.join(metadata=metadata)
        side.ask(DescribeGroupsRequest(groups=[group]), note="a classic group once more")

    both.agree(scenario)


def test_who_waits_for_a_partition_when_a_group_changes_back(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        new = Member(side, group, "new", topic, instance_id="static")
        new.join()
        waiting = Client(side, group, "waiting")
        waiting.join(metadata=subscription(topic))
        waiting.sync({})
        waiting.heartbeat()
        Client(side, group, "old", instance_id="static").start_join(metadata=subscription(topic))
        side.call(DescribeGroupsRequest(groups=[group]), 6, until=lambda answer: not answer.groups[0].error_code)
        waiting.heartbeat(note="when the group is a classic one")

    both.agree(lambda side: eventually(side, scenario), "groups that change over")


def test_who_may_change_over(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic = known_topic(side, 2)
        for name, metadata, assignment in (("malformed", b"\0", b""), ("odd", subscription(topic), b"odd")):
            old = Client(side, side.name(name), "old")
            old.join(metadata=metadata)
            old.sync({old: assignment})
            Member(side, old.group, "new", topic).join()
        connect = Client(side, side.name("connect"), "worker")
        connect.join(protocol_type="connect")
        connect.sync({connect: b""}, protocol_type="connect")
        Member(side, connect.group, "new", topic).join()
        group = side.name("group")
        Member(side, group, "new", topic).join()
        for protocol_type in ("connect", ""):
            client = Client(side, group, f"of {protocol_type}")
            client.ask(client.join_request(member_id="x", protocol_type=protocol_type, metadata=subscription(topic)))
        client.ask(client.join_request(protocols=(), metadata=subscription(topic)), note="without protocols")

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
