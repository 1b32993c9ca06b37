"""Subscriptions by regular expression: when they are resolved, and what follows."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.consumer import resolution
from kwire.coordinator.groups.consumer.member import ConsumerMember
from kwire.coordinator.groups.consumer.patterns import TopicWatch
from kwire.coordinator.groups.consumer.records import member_record
from kwire.coordinator.runtime.outcome import Outcome
from kwire.metadata.image import MetadataImage
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.consumer.changing import Reader, subscription
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
from tests.coordinator.groups.desk import Desk


def by(regex: str, *names: str) -> dict[str, object]:
    return {"subscribed_topic_names": list(names), "subscribed_topic_regex": regex}


def topics_of(member: Member) -> set[bytes]:
    return set(member.owned)


def test_topics_are_found_behind_the_answer() -> None:
    at = desk({"ta": 1, "tb": 2, "other": 1})
    member = Member(at, "one", **by("t."))
    assert owned(member.join()) == {}
    assert group_of(at).epochs.group == 1, "no epoch before the topics are known"
    at.settle()
    assert group_of(at).epochs.group == 2
    assert group_of(at).regexes["t."].topics == {"ta", "tb"}
    settle(member)
    assert topics_of(member) == {topic_id("ta"), topic_id("tb")}


def test_the_whole_name_must_match() -> None:
    at = desk({"topic": 1, "a-topic": 1, "topics": 1})
    Member(at, "one", **by("topic")).join()
    at.settle()
    assert group_of(at).regexes["topic"].topics == {"topic"}


def test_names_and_an_expression_go_together() -> None:
    at = desk({"a": 1, "b": 1, "c": 1})
    member = Member(at, "one", **by("b|c", "a", "b"))
    member.join()
    at.settle()
    settle(member)
    assert topics_of(member) == {topic_id("a"), topic_id("b"), topic_id("c")}
    assert group_of(at).is_subscribed_to("c")
    assert not group_of(at).is_subscribed_to("d")


def test_new_topics_are_found_but_not_more_often_than_every_ten_seconds() -> None:
    at = desk({"ta": 1})
    member = Member(at, "one", **by("t."))
    member.join()
    at.settle()
    at.image = with_topics(at.image, {"tb": 1})
    at.pass_time(10_000)
    settle(member)
    assert topics_of(member) == {topic_id("ta")}
    at.pass_time(1)
    member.beat()
    at.settle()
    settle(member)
    assert topics_of(member) == {topic_id("ta"), topic_id("tb")}


def test_new_topics_are_found_also_when_the_clock_was_set_back() -> None:
    at = desk({"ta": 1})
    member = Member(at, "one", **by("t."))
    member.join()
    at.settle()
    at.image = with_topics(at.image, {"tb": 1})
    at.set_ms = -3_600_000
    settle(member)
    at.settle()
    settle(member)
    assert topics_of(member) == {topic_id("ta"), topic_id("tb")}


def test_without_new_topics_nothing_is_resolved() -> None:
    at = desk({"ta": 1})
    member = Member(at, "one", **by("t."))
    member.join()
    at.settle()
    settle(member)
    written = len(at.log)
    for _ in range(3):
        at.pass_time(20_000)
        member.beat()
        at.settle()
    assert len(at.log) == written


def test_but_after_the_refresh_interval() -> None:
    at = desk({"ta": 1}, **{"group.consumer.regex.refresh.interval.ms": "30000"})
    member = Member(at, "one", **by("t."))
    member.join()
    at.settle()
    settle(member)
    at.image = without_topic(at.image, "ta")
    settle(member)
    assert topics_of(member) == set(), "a topic that is gone is not assigned, whatever the expression"
    assert group_of(at).regexes["t."].topics == {"ta"}
    at.pass_time(30_001)
    member.beat()
    at.settle()
    assert group_of(at).regexes["t."].topics == set()


def test_a_known_expression_is_assigned_at_once() -> None:
    at = desk({"ta": 2})
    one, two = Member(at, "one", **by("t.")), Member(at, "two", **by("t."))
    one.join()
    at.settle()
    settle(one)
    two.join()
    settle(one, two)
    assert (one.has("ta"), two.has("ta")) == ({0}, {1})


def test_a_second_expression_waits_for_the_next_time() -> None:
    at = desk({"ta": 1, "ub": 1})
    one, two = Member(at, "one", **by("t.")), Member(at, "two", **by("u."))
    one.join()
    at.settle()
    two.join()
    at.settle()
    assert set(group_of(at).regexes) == {"t."}
    at.pass_time(10_001)
    two.beat()
    at.settle()
    settle(one, two)
    assert (topics_of(one), topics_of(two)) == ({topic_id("ta")}, {topic_id("ub")})


def test_what_nobody_subscribes_to_is_forgotten() -> None:
    at = desk({"ta": 1})
    one, two = Member(at, "one", **by("t.")), Member(at, "two", **by("t."))
    one.join()
    two.join()
    at.settle()
    one.leave()
    assert set(group_of(at).regexes) == {"t."}
    two._take(two.say(two.owned, subscribed_topic_regex=""))
    assert set(group_of(at).regexes) == set()
    settle(two)
    assert topics_of(two) == set()
    assert group_of(at.reloaded()).epochs == group_of(at).epochs


def test_and_when_the_last_one_leaves() -> None:
    at = desk({"ta": 1})
    one = Member(at, "one", **by("t."))
    one.join()
    at.settle()
    one.leave()
    assert set(group_of(at).regexes) == set()
    assert not group_of(at).is_subscribed_to("ta")


def test_a_group_that_is_gone_is_not_resolved() -> None:
    at = desk({"ta": 1})
    one = Member(at, "one", **by("t."))
    one.join()
    group = group_of(at)
    one.leave()
    at.run(lambda machine, now: Outcome(None, group.tombstones()))
    at.settle()
    assert group.id not in at.machine.groups


def test_only_what_may_be_described_matches() -> None:
    at = desk({"ta": 1, "tb": 1})
    beat(at, may_describe=lambda topic: topic == "tb", **joining("one", **by("t.")))
    at.settle()
    assert group_of(at).regexes["t."].topics == {"tb"}


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "missing closing )"),
        ("a**", "invalid nested repetition operator"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?<=a)", "invalid named capture"),
        ("(a)\\1", "invalid escape sequence"),
        ("\\C", "invalid escape sequence"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
    ],
)
def test_what_is_no_expression_of_re2(regex: str, reason: str) -> None:
    at = desk({})
    with pytest.raises(KafkaError) as raised:
        Member(at, "one", **by(regex)).join()
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert raised.value.message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."


def test_who_joins_by_the_classic_protocol_has_nothing_resolved() -> None:
    """What he may describe is not asked, and matters to who subscribes to the expression."""
    at = desk({"ta": 1})
    member = Member(at, "one", **by("t."))
    member.join()
    at.settle()
    at.image = with_topics(at.image, {"tb": 1})
    at.pass_time(10_001)
    Reader(at).join(subscription("ta"))
    at.settle()
    assert group_of(at).regexes["t."].topics == {"ta"}
    member.beat()
    at.settle()
    assert group_of(at).regexes["t."].topics == {"ta", "tb"}


class TestAPartAtATime:
    @pytest.fixture(autouse=True)
    def one_topic_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resolution, "STEPS_AT_ONCE", 1)

    def begun(self, **topics: int) -> tuple[Desk, Member]:
        """A member whose expression has been looked for among the first topic."""
        at = desk(topics)
        member = Member(at, "one", **by("t."))
        member.join()
        (begin,) = at.machine.deadlines.pop_due(at.ms)
        assert begin(at.now) is None
        assert resolution.is_under_way(at.machine, GROUP)
        return at, member

    def test_others_get_their_turn(self) -> None:
        at, _ = self.begun(ta=1, tb=1, u=1)
        assert group_of(at).regexes.get("t.") is None
        at.settle()
        assert group_of(at).regexes["t."].topics == {"ta", "tb"}

    def test_topics_that_come_meanwhile_wait_for_the_next_time(self) -> None:
        at, member = self.begun(ta=1, tb=1)
        at.image = with_topics(at.image, {"tc": 1})
        at.settle()
        assert group_of(at).regexes["t."].topics == {"ta", "tb"}
        at.pass_time(10_001)
        member.beat()
        at.settle()
        assert group_of(at).regexes["t."].topics == {"ta", "tb", "tc"}

    def test_what_nobody_subscribes_to_any_more_is_dropped(self) -> None:
        at, member = self.begun(ta=1, tb=1)
        member.say({}, subscribed_topic_regex="")
        written = len(at.log)
        at.settle()
        assert not list(group_of(at).regexes)
        assert len(at.log) == written

    def test_the_group_may_be_gone_meanwhile(self) -> None:
        at, member = self.begun(ta=1, tb=1)
        group = group_of(at)
        member.leave()
        at.run(lambda machine, now: Outcome(None, group.tombstones()))
        at.settle()
        assert GROUP not in at.machine.groups


def test_an_expression_of_another_broker_that_is_none_here_matches_nothing() -> None:
    at = desk({"ta": 1})
    at.machine.replay(member_record(GROUP, ConsumerMember("other", topic_regex="(?<=a)")), None)
    Member(at, "one", **by("t.")).join()
    at.settle()
    assert {regex: found.topics for regex, found in group_of(at).regexes.items()} == {"(?<=a)": set(), "t.": {"ta"}}


def test_a_slow_expression_for_others_is_none_here() -> None:
    at = desk({"a" * 200: 1})
    Member(at, "one", **by("(a|a)*(a|a)*(a|a)*b")).join()
    at.settle()
    assert group_of(at).regexes["(a|a)*(a|a)*(a|a)*b"].topics == set()


def test_the_watch_sees_new_topics_only() -> None:
    watch = TopicWatch()
    image = with_topics(MetadataImage(), {"a": 1})
    assert watch.newest(image) == 1
    more = with_topics(image, {"a": 2})
    assert watch.newest(more) == 1
    third = with_topics(more, {"b": 1})
    assert watch.newest(third) == 3
    assert watch.newest(without_topic(third, "b")) == 3
    assert watch.newest(with_topics(without_topic(third, "b"), {"b": 1}, 1)) == 5
