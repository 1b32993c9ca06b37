"""Groups that change over from the classic to the consumer protocol and back."""

from __future__ import annotations

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.consumer_groups import Member, assignment, eventually, known_topic
from compat_tests.oracle.groups import Client, settle_groups, subscription
from compat_tests.oracle.sides import Side
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest

pytestmark = pytest.mark.xdist_group("oracle")


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


def test_an_empty_group_that_a_stranger_wants_to_join(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic, group = known_topic(side, 2), side.name("group")
        new = Member(side, group, "new", topic)
        new.join()
        new.leave()
        stranger = Client(side, group, "stranger")
        stranger.ask(stranger.join_request(member_id="x", metadata=subscription(topic)))
        Member(side, group, "again", topic).join()

    both.agree(scenario, "groups that change over")


def test_who_may_change_over(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_groups(side)
        topic = known_topic(side, 2)
        for name, metadata, handed_in in (("malformed", b"\0", b""), ("odd", subscription(topic), b"odd")):
            old = Client(side, side.name(name), "old")
            old.join(metadata=metadata)
            old.sync({old: handed_in})
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
