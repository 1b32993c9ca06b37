"""Groups that change over from the classic to the consumer protocol member by member, and back."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups import requests
from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.runtime.outcome import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.coordinator.groups.consumer.changing import Reader, assignment, classic_group, subscription, told
from tests.coordinator.groups.consumer.support import (
    GROUP,
    Member,
    desk,
    group_of,
    settle,
    topic_id,
    with_topics,
)
from tests.coordinator.groups.desk import Desk, client

T = topic_id("t")


def test_a_classic_group_becomes_a_consumer_group_and_nothing_stops() -> None:
    at = desk({"t": 4})
    one, two = Reader(at), Reader(at)
    classic_group(at, one, two)
    generation = one.generation
    new = Member(at, "new")
    new.join()
    group = group_of(at)
    assert group.epochs.group == generation + 1
    assert {member.classic is None for member in group.members.values()} == {True, False}
    for _ in range(4):
        one.go_on()
        two.go_on()
        new.beat()
    assert group.state_name == "Stable"
    shares = [set(one.has), set(two.has), new.has("t")]
    assert sorted(map(len, shares)) == [1, 1, 2]
    assert set.union(*shares) == {0, 1, 2, 3}
    assert one.generation == two.generation == new.epoch
    assert snapshot(at.reloaded()) == snapshot(at)


def test_an_old_client_that_knows_no_rebalance_timeout_has_the_time_of_its_session() -> None:
    at = desk({"t": 2})
    new = Member(at, "new")
    new.join()
    old = Reader(at, version=0)
    old.join(subscription("t"))
    at.pass_time(1_000)
    assert old.id in group_of(at).members
    old.take()
    for _ in range(4):
        old.go_on()
        new.beat()
    assert sorted([len(old.has), len(new.has("t"))]) == [1, 1]


def snapshot(at: Desk) -> object:
    group = group_of(at)
    return sorted(group.members.items()), sorted(group.targets.items()), group.epochs, group.classic_members


def test_and_a_classic_group_again_when_the_last_new_member_has_gone() -> None:
    at = desk({"t": 4})
    one = Reader(at)
    classic_group(at, one)
    new = Member(at, "new")
    new.join()
    for _ in range(4):
        one.go_on()
        new.beat()
    epoch = group_of(at).epochs.group
    new.leave()
    group = at.machine.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.generation, group.state_name) == (epoch, "PreparingRebalance")
    assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    one.join(subscription("t", owned=one.has))
    assert one.generation == epoch + 1
    assert one.sync({one.id: assignment(0, 1, 2, 3)}) is not None
    again = at.reloaded().machine.groups[GROUP]
    assert isinstance(again, ClassicGroup)
    assert (set(again.members), again.generation) == ({one.id}, epoch + 1)


def test_a_new_member_that_falls_silent_makes_it_a_classic_group_too() -> None:
    at = desk({"t": 2})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    Member(at, "new").join()
    for _ in range(4):
        at.pass_time(9_000)
        one.go_on()
    assert set(group_of(at).members) == {one.id, "new"}
    at.pass_time(9_000)
    assert isinstance(at.machine.groups[GROUP], ClassicGroup)


def test_a_downgrade_that_cannot_be_written_is_undone() -> None:
    at = desk({"t": 2})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    new = Member(at, "new")
    new.join()
    at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        new.leave()
    assert set(group_of(at).members) == {one.id, "new"}
    for _ in range(2):
        one.go_on()
        new.beat()
    assert group_of(at).state_name == "Stable"


def test_an_upgrade_that_cannot_be_written_is_none() -> None:
    at = desk({"t": 2})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        Member(at, "new").join()
    assert isinstance(at.machine.groups[GROUP], ClassicGroup)
    assert one.heartbeat() is ErrorCode.NONE


def test_and_the_classic_group_goes_on_as_before() -> None:
    at = desk({"t": 2})
    one, two = Reader(at), Reader(at)
    classic_group(at, one, partitions=2)
    two.join(subscription("t"))
    at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        Member(at, "new").join()
    with pytest.raises(KafkaError, match="REBALANCE_IN_PROGRESS"):
        two.joined()
    two.join(subscription("t"))
    at.pass_time(10_000)  # the first has gone
    assert two.joined() is not None
    group = at.machine.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert set(group.members) == {two.id}


def test_who_waits_for_a_rebalance_of_the_classic_group_joins_again() -> None:
    at = desk({"t": 2})
    one, two = Reader(at), Reader(at)
    classic_group(at, one, partitions=2)
    two.join(subscription("t"))
    assert isinstance(two.waiting, Pending)
    Member(at, "new").join()
    with pytest.raises(KafkaError) as raised:
        two.joined()
    assert raised.value.code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_that_does_not_join_again_is_fenced() -> None:
    at = desk({"t": 2})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    new = Member(at, "new")
    new.join()
    for _ in range(7):
        assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        at.pass_time(9_000)
        new.beat()
    assert set(group_of(at).members) == {"new"}


def test_a_classic_member_that_does_not_sync_is_fenced() -> None:
    at = desk({"t": 2})
    Member(at, "new").join()
    one = Reader(at)
    one.join(subscription("t"))
    for _ in range(8):
        at.pass_time(8_000)
        Member(at, "new").join()
        if one.id in group_of(at).members:
            one.heartbeat()
    assert set(group_of(at).members) == {"new"}


def test_a_classic_member_joins_a_consumer_group() -> None:
    at = desk({"t": 4})
    new = Member(at, "new")
    new.join()
    one = Reader(at)
    response = one.join(subscription("t"))
    assert response is not None
    assert (response.protocol_type, response.protocol_name, response.leader) == ("consumer", "range", "")
    one.take()
    assert one.has == frozenset()
    settle(new)
    one.go_on()
    assert len(one.has) == len(new.has("t")) == 2
    assert one.leave() is ErrorCode.NONE
    settle(new)
    assert new.has("t") == {0, 1, 2, 3}


@pytest.mark.parametrize("metadata", [b"", b"\xff\xff", b"\0\1\0\0\0\1\0\1", b"\0\3\x7f\xff\xff\xff"])
def test_a_subscription_that_cannot_be_read_is_refused(metadata: bytes) -> None:
    at = desk({"t": 4})
    new = Member(at, "new")
    new.join()
    with pytest.raises(KafkaError) as error:
        Reader(at).join(metadata)
    assert error.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert list(group_of(at).members) == ["new"]


def test_an_admin_removes_members_of_either_protocol() -> None:
    at = desk({"t": 2})
    static = Member(at, "static", instance_id="a")
    static.join()
    other = Member(at, "other")
    other.join()
    request = LeaveGroupRequest(
        group_id=GROUP,
        members=[
            MemberIdentity(member_id="", group_instance_id="a"),
            MemberIdentity(member_id="stranger", group_instance_id=None),
            MemberIdentity(member_id="", group_instance_id="b"),
        ],
    )
    response = at.run(lambda machine, now: requests.leave(machine, client(version=5), request, now))
    assert [answer.error_code for answer in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(group_of(at).members) == {"other"}


def test_an_empty_group_is_of_whoever_comes_first() -> None:
    at = desk({"t": 2})
    new = Member(at, "new")
    new.join()
    new.leave()
    one = Reader(at)
    one.join(subscription("t"))
    at.settle()
    assert one.joined() is not None
    assert isinstance(at.machine.groups[GROUP], ClassicGroup)
    assert isinstance(at.reloaded().machine.groups[GROUP], ClassicGroup)
    assert one.leave() is ErrorCode.NONE
    new.join()
    assert set(group_of(at).members) == {"new"}
    assert set(group_of(at.reloaded()).members) == {"new"}


def test_an_empty_group_that_cannot_change_over_stays() -> None:
    at = desk({"t": 2})
    new = Member(at, "new")
    new.join()
    new.leave()
    at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        Reader(at, version=3).join(subscription("t"))
    assert group_of(at).is_empty


class TestStatic:
    def test_a_classic_static_member_takes_the_place_of_the_last_new_one(self) -> None:
        at = desk({"t": 4})
        one = Reader(at)
        classic_group(at, one)
        new = Member(at, "new", instance_id="s")
        new.join()
        for _ in range(4):
            one.go_on()
            new.beat()
        has = new.has("t")
        assert len(has) == 2
        old = Reader(at, instance_id="s")
        old.join(subscription("t"))
        group = at.machine.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        assert set(group.members) == {one.id, old.id}
        assert group.state_name == "Stable"
        assert told(group.members[old.id].assignment) == has
        again = at.reloaded().machine.groups[GROUP]
        assert isinstance(again, ClassicGroup)
        assert set(again.members) == {one.id, old.id}

    def test_who_still_waits_for_a_partition_then_gets_it(self) -> None:
        at = desk({"t": 2})
        new = Member(at, "new", instance_id="s")
        new.join()
        one = Reader(at)
        one.join(subscription("t"))
        one.take()
        assert one.has == frozenset()
        old = Reader(at, instance_id="s")
        old.join(subscription("t"))
        group = at.machine.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        assert group.state_name == "PreparingRebalance"
        assert one.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_new_static_member_takes_the_place_of_a_classic_one(self) -> None:
        at = desk({"t": 4})
        one, two = Reader(at, instance_id="one"), Reader(at)
        classic_group(at, one, two)
        has = set(one.has)
        new = Member(at, "new", instance_id="one")
        new.join()
        assert set(group_of(at).members) == {"new", two.id}
        assert new.has("t") == has
        with pytest.raises(KafkaError) as raised:
            one.heartbeat()
        assert raised.value.code is ErrorCode.FENCED_INSTANCE_ID

    def test_a_static_member_that_has_not_left_keeps_its_instance_id(self) -> None:
        at = desk({"t": 1})
        Member(at, "one", instance_id="s").join()
        with pytest.raises(KafkaError, match="because the instance id is owned by one member") as raised:
            Member(at, "two", instance_id="s").join()
        assert raised.value.code is ErrorCode.UNRELEASED_INSTANCE_ID

    def test_a_static_member_comes_back_to_what_it_had(self) -> None:
        at = desk({"t": 4})
        one, two = Member(at, "one", instance_id="s"), Member(at, "two")
        one.join()
        two.join()
        settle(one, two)
        has = one.has("t")
        response = one.leave(-2)
        assert (response.member_id, response.member_epoch) == ("one", -2)
        settle(two)
        assert two.has("t") == {0, 1, 2, 3} - has
        again = Member(at, "again", instance_id="s")
        again.join()
        assert again.has("t") == has
        assert set(group_of(at).members) == {"again", "two"}
        for act in (lambda: one.say(None), lambda: one.leave(-1)):
            with pytest.raises(KafkaError, match=r"with instance id s was fenced by member again\.") as raised:
                act()
            assert raised.value.code is ErrorCode.FENCED_INSTANCE_ID

    def test_a_static_member_that_does_not_come_back_is_fenced(self) -> None:
        at = desk({"t": 1})
        one = Member(at, "one", instance_id="s")
        one.join()
        one.leave(-2)
        at.pass_time(45_000)
        assert group_of(at).is_empty

    def test_an_unknown_instance_id(self) -> None:
        at = desk({"t": 1})
        Member(at, "one").join()
        with pytest.raises(KafkaError, match=r"Instance id s is unknown\.") as raised:
            Member(at, "one", instance_id="s").leave(-2)
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_may_change_over_by_itself() -> None:
    at = desk({"t": 2})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    Member(at, "new").join()
    assert group_of(at).classic_members == 1
    member = Member(at, one.id)
    member.join()
    assert group_of(at).classic_members == 0


def test_a_group_whose_first_rebalance_is_not_over() -> None:
    at = desk({"t": 1}, **{"group.initial.rebalance.delay.ms": "3000"})
    Reader(at, instance_id="s").join(subscription("t"))
    new = Member(at, "new", instance_id="s")
    new.join()
    assert (new.epoch, new.has("t")) == (2, {0})


def test_where_nothing_may_change_back_the_partitions_of_who_left_are_read_on() -> None:
    at = desk({"t": 2}, **{"group.consumer.migration.policy": "upgrade"})
    one = Reader(at)
    classic_group(at, one, partitions=2)
    new = Member(at, "new")
    new.join()
    for _ in range(3):
        one.go_on()
        new.beat()
    assert len(one.has) == 1
    new.leave()
    one.go_on()
    assert one.has == {0, 1}
    at.image = with_topics(at.image, {"t": 3})
    one.go_on()
    assert one.has == {0, 1, 2}
