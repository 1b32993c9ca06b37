"""Members that join, share partitions, and leave."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.consumer.heartbeat import heartbeat
from kwire.coordinator.groups.consumer.sessions import RETRY_MS
from kwire.coordinator.runtime.outcome import Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordinator.groups.consumer.support import (
    GROUP,
    Member,
    beat,
    desk,
    group_of,
    joining,
    owned,
    settle,
    topic_id,
    with_topics,
    without_topic,
)
from tests.coordinator.groups.desk import Desk, client

T = topic_id("t")


def test_the_first_member_gets_everything() -> None:
    at = desk({"t": 3})
    response = beat(at, **joining())
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m", 2, 5000)
    assert owned(response) == {T: {0, 1, 2}}
    assert group_of(at).state_name == "Stable"


def test_the_second_waits_until_the_first_has_let_go() -> None:
    at = desk({"t": 4})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    assert two.has("t") == set()
    assert group_of(at).state_name == "Reconciling"
    told = one.say({T: {0, 1, 2, 3}})
    assert owned(told) == {T: {0, 1}}
    assert told.member_epoch == 2, "it keeps its epoch until it has let go"
    two.beat()
    assert two.has("t") == set(), "the first has not said yet that it let go"
    one._take(told)
    one.beat()
    assert one.epoch == 3
    two.beat()
    assert (one.has("t"), two.has("t")) == ({0, 1}, {2, 3})
    assert group_of(at).state_name == "Stable"


def test_what_it_has_let_go_of_a_member_may_say_in_several_parts() -> None:
    at = desk({"t": 2})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    one.say({T: {0, 1}})
    parts = [TopicPartitions(topic_id=T, partitions=[index]) for index in (1, 0)]
    beat(at, member_id="one", member_epoch=2, topic_partitions=parts)
    two.beat()
    assert two.has("t") == set()


def test_what_a_member_leaves_behind_goes_to_the_others() -> None:
    at = desk({"t": 4})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    settle(one, two)
    response = two.leave()
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("two", -1, 0)
    assert response.assignment is None
    one.beat()
    assert one.has("t") == {0, 1, 2, 3}
    one.leave()
    assert group_of(at).state_name == "Empty"


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    at = desk({"t": 1})
    member = Member(at, "one")
    member.join()
    written = len(at.log)
    response = member.say(None)
    assert response.assignment is None
    assert len(at.log) == written


def test_a_full_request_is_told_everything() -> None:
    at = desk({"t": 1})
    member = Member(at, "one")
    member.join()
    response = member.say({T: {0}}, rebalance_timeout_ms=5000, subscribed_topic_names=["t"])
    assert owned(response) == {T: {0}}


def test_silence_fences() -> None:
    at = desk({"t": 1})
    Member(at, "one").join()
    at.pass_time(44_999)
    assert "one" in group_of(at).members
    at.pass_time(1)
    assert "one" not in group_of(at).members


def test_heartbeats_keep_a_session() -> None:
    at = desk({"t": 1})
    member = Member(at, "one")
    member.join()
    for _ in range(5):
        at.pass_time(40_000)
        member.beat()
    assert "one" in group_of(at).members


def test_who_does_not_let_go_in_time_is_fenced() -> None:
    at = desk({"t": 2})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    one.say({T: {0, 1}})
    at.pass_time(4_999)
    assert "one" in group_of(at).members
    at.pass_time(1)
    assert "one" not in group_of(at).members
    two.beat()
    assert two.has("t") == {0, 1}


def test_who_lets_go_in_time_is_not() -> None:
    at = desk({"t": 2})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    one.beat()
    one.beat()
    at.pass_time(5_000)
    assert set(group_of(at).members) == {"one", "two"}


def test_more_partitions_begin_an_epoch() -> None:
    at = desk({"t": 1})
    member = Member(at, "one")
    member.join()
    at.image = with_topics(at.image, {"t": 3})
    member.beat()
    assert member.has("t") == {0, 1, 2}
    assert member.epoch == 3


def test_a_topic_that_comes_later_is_assigned() -> None:
    at = desk({})
    member = Member(at, "one")
    member.join()
    assert member.owned == {}
    at.image = with_topics(at.image, {"t": 2, "other": 1})
    member.beat()
    assert member.owned == {T: {0, 1}}


def test_a_topic_that_goes_is_taken_away() -> None:
    at = desk({"t": 1, "u": 1})
    member = Member(at, "one", subscribed_topic_names=["t", "u"])
    member.join()
    at.image = without_topic(at.image, "t")
    settle(member)
    assert member.owned == {topic_id("u"): {0}}


def test_other_topics_are_no_reason() -> None:
    at = desk({"t": 1})
    member = Member(at, "one")
    member.join()
    at.image = with_topics(at.image, {"other": 3})
    written = len(at.log)
    member.beat()
    assert len(at.log) == written


def test_a_member_may_change_its_topics() -> None:
    at = desk({"t": 2, "u": 1})
    member = Member(at, "one")
    member.join()
    told = member.say({T: {0, 1}}, subscribed_topic_names=["u"])
    assert owned(told) == {}
    member._take(told)
    settle(member)
    assert member.owned == {topic_id("u"): {0}}


def test_members_without_topics_are_members() -> None:
    at = desk({"t": 1})
    response = beat(at, **joining(subscribed_topic_names=[]))
    assert (response.member_epoch, owned(response)) == (1, {})
    assert group_of(at).state_name == "Stable"


def test_assignments_stay_for_their_interval() -> None:
    at = desk({"t": 2}, **{"group.consumer.assignment.interval.ms": "1000"})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    two.join()
    assert group_of(at).state_name == "Assigning"
    settle(one, two, rounds=2)
    assert (one.has("t"), two.has("t")) == ({0, 1}, set())
    at.pass_time(1000)
    settle(one, two)
    assert (one.has("t"), two.has("t")) == ({0}, {1})


def test_assignments_are_made_also_when_the_clock_was_set_back() -> None:
    at = desk({"t": 2}, **{"group.consumer.assignment.interval.ms": "1000"})
    one, two = Member(at, "one"), Member(at, "two")
    one.join()
    at.set_ms = -3_600_000
    two.join()
    settle(one, two)
    assert (one.has("t"), two.has("t")) == ({0}, {1})


def test_an_older_client_is_given_its_id() -> None:
    at = desk({"t": 1})
    response = beat(at, version=0, **joining(""))
    assert response.member_id
    assert response.member_id in group_of(at).members


def test_most_members_choose_the_assignor() -> None:
    at = desk({"t": 4, "u": 4})
    members = [
        Member(at, name, server_assignor=wish, subscribed_topic_names=["t", "u"])
        for name, wish in (("a", "range"), ("b", "range"), ("c", "uniform"), ("d", None))
    ]
    for member in members:
        member.join()
    settle(*members)
    assert [member.has("t") for member in members] == [member.has("u") for member in members] == [{0}, {1}, {2}, {3}]


def test_the_groups_own_settings_count() -> None:
    at = desk({"t": 1}, **{"group.consumer.min.heartbeat.interval.ms": "1000"})
    own = {"consumer.heartbeat.interval.ms": "2000", "consumer.session.timeout.ms": "50000"}
    at.image = with_topics(at.image, {})
    object.__setattr__(at.image, "configs", {("group", GROUP): own})
    assert beat(at, **joining()).heartbeat_interval_ms == 2000
    at.pass_time(49_999)
    assert "m" in group_of(at).members
    at.pass_time(1)
    assert "m" not in group_of(at).members


class TestEpochs:
    def test_a_greater_epoch_is_fenced(self) -> None:
        at = desk({"t": 1})
        member = Member(at, "one")
        member.join()
        member.epoch = 3
        with pytest.raises(KafkaError, match=r"greater member epoch \(3\) .* \(2\)") as raised:
            member.say({T: {0}})
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH

    def test_a_smaller_epoch_is_fenced(self) -> None:
        at = desk({"t": 1})
        member = Member(at, "one")
        member.join()
        member.epoch = 1
        with pytest.raises(KafkaError, match=r"smaller member epoch \(1\)") as raised:
            member.say({T: {0}})
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH

    def test_an_answer_may_be_lost(self) -> None:
        at = desk({"t": 1})
        member = Member(at, "one")
        member.join()
        at.image = with_topics(at.image, {"t": 2})
        member.say({T: {0}})
        response = member.say({T: {0}})
        assert response.member_epoch == 3

    def test_but_it_owns_no_more_than_it_was_given(self) -> None:
        at = desk({"t": 1})
        member = Member(at, "one")
        member.join()
        at.image = with_topics(at.image, {"t": 2})
        member.say({T: {0}})
        for has in ({T: {5}}, {topic_id("u"): {0}}, None):
            with pytest.raises(KafkaError) as raised:
                member.say(has)
            assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH

    def test_epoch_0_joins_again(self) -> None:
        at = desk({"t": 1})
        member = Member(at, "one")
        member.join()
        assert owned(member.join()) == {T: {0}}
        assert member.epoch == 2


class TestErrors:
    def test_nobody_joins_by_another_epoch(self) -> None:
        at = desk({"t": 1})
        with pytest.raises(KafkaError, match=r"Consumer group group not found\.") as raised:
            beat(at, **joining(member_epoch=1))
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        Member(at, "one").join()
        with pytest.raises(KafkaError, match=r"Member m is not a member of group group\.") as raised:
            beat(at, **joining(member_epoch=1))
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID

    def test_nobody_leaves_who_is_not_there(self) -> None:
        at = desk({"t": 1})
        with pytest.raises(KafkaError, match=r"Group group not found\.") as raised:
            Member(at, "one").leave()
        assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        Member(at, "two").join()
        with pytest.raises(KafkaError) as raised:
            Member(at, "one").leave()
        assert raised.value.code is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_group_may_be_full(self) -> None:
        at = desk({"t": 1}, **{"group.consumer.max.size": "1"})
        one = Member(at, "one")
        one.join()
        with pytest.raises(KafkaError, match="maximum capacity of 1 members") as raised:
            Member(at, "two").join()
        assert raised.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
        one.join()

    def test_an_error_leaves_nothing_behind(self) -> None:
        at = desk({"t": 1})
        with pytest.raises(KafkaError):
            beat(at, **joining(subscribed_topic_regex="("))
        assert GROUP not in at.machine.groups
        assert len(at.machine.deadlines) == len(desk({}).machine.deadlines)


class TestWritesThatFail:
    def test_a_write_that_fails_leaves_nothing_behind(self) -> None:
        at = desk({"t": 2})
        one = Member(at, "one")
        one.join()
        at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            Member(at, "two").join()
        assert set(group_of(at).members) == {"one"}
        one.beat()
        assert (one.epoch, one.has("t")) == (2, {0, 1})

    def test_who_cannot_be_fenced_is_a_moment_later(self) -> None:
        at = desk({"t": 1})
        Member(at, "one").join()
        at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            at.pass_time(45_000)
        at.pass_time(RETRY_MS - 1)
        assert set(group_of(at).members) == {"one"}
        at.pass_time(1)
        assert group_of(at).is_empty

    def test_who_does_not_let_go_in_time_and_cannot_be_fenced_is_a_moment_later(self) -> None:
        at = desk({"t": 2})
        one, two = Member(at, "one"), Member(at, "two")
        one.join()
        two.join()
        one.say({T: {0, 1}})
        at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            at.pass_time(5_000)
        one.say({T: {0, 1}})
        at.pass_time(RETRY_MS)
        assert set(group_of(at).members) == {"two"}

    def test_who_lets_go_before_that_stays(self) -> None:
        at = desk({"t": 2})
        one, two = Member(at, "one"), Member(at, "two")
        one.join()
        two.join()
        told = one.say({T: {0, 1}})
        at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            at.pass_time(5_000)
        one._take(told)
        one.beat()
        at.pass_time(RETRY_MS)
        assert set(group_of(at).members) == {"one", "two"}

    def test_who_cannot_leave_is_fenced_after_another_session(self) -> None:
        at = desk({"t": 1})
        one = Member(at, "one")
        one.join()
        at.pass_time(44_000)
        at.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            one.leave()
        at.pass_time(44_999)
        assert set(group_of(at).members) == {"one"}
        at.pass_time(1)
        assert group_of(at).is_empty

    def test_topics_that_change_are_noticed_though_the_epoch_that_began_was_not_written(self) -> None:
        at = desk({"t": 1})
        one = Member(at, "one")
        one.join()
        at.image = with_topics(at.image, {"t": 2})
        about_to_be_written = self.heartbeat_of_one(at, 2).records
        timeline = at.machine.timeline
        number = timeline.begin()
        for record in about_to_be_written:
            at.machine.replay(record, None)
        timeline.end()
        assert not self.heartbeat_of_one(at, 3).records
        timeline.revert(number)
        one.beat()
        assert one.has("t") == {0, 1}

    def heartbeat_of_one(self, at: Desk, epoch: int) -> Outcome[ConsumerGroupHeartbeatResponse]:
        """What is about to be written."""
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="one", member_epoch=epoch)
        return heartbeat(at.machine, client(), request, lambda topic: True, at.now)
