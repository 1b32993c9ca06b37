"""The assignors, whatever the group."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.groups.consumer.assignors import overlapping, uniform
from kwire.coordinator.groups.consumer.assignors import range as range_assignor
from kwire.coordinator.groups.consumer.assignors.spec import GroupSpec, MemberSpec
from kwire.coordinator.groups.consumer.member import Partitions

TOPICS = [bytes([number]) * 16 for number in range(5)]
ASSIGNORS = {"uniform": uniform.assign, "range": range_assignor.assign}


def all_of(topics: dict[bytes, int]) -> set[tuple[bytes, int]]:
    return {(topic, index) for topic, count in topics.items() for index in range(count)}


def flat(partitions: Partitions) -> set[tuple[bytes, int]]:
    return {(topic, index) for topic, indexes in partitions.items() for index in indexes}


def spec(
    topics: dict[bytes, int], subscriptions: dict[str, list[bytes]], targets: dict[str, Partitions] | None = None
) -> GroupSpec:
    members = {
        name: MemberSpec(frozenset(topic_ids), (targets or {}).get(name, {}))
        for name, topic_ids in subscriptions.items()
    }
    return GroupSpec(members, topics, len({member.topics for member in members.values()}) <= 1)


def check(group: GroupSpec, assignment: dict[str, Partitions]) -> None:
    """Every partition that somebody subscribes to has exactly one owner, who subscribes to it."""
    owners = Counter(partition for partitions in assignment.values() for partition in flat(partitions))
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    assert set(owners) == all_of({topic: group.partitions[topic] for topic in subscribed})
    assert set(owners.values()) <= {1}
    for name, partitions in assignment.items():
        assert set(partitions) <= set(group.members[name].topics)
        assert all(partitions.values()), "no topic without partitions"


topics_of_groups = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)
names = st.lists(st.text("abcdefgh", min_size=1, max_size=3), unique=True, min_size=1, max_size=8)


@given(topics_of_groups, names)
def test_uniform_is_balanced_within_one(topics: dict[bytes, int], members: list[str]) -> None:
    group = spec(topics, {name: list(topics) for name in members})
    assignment = uniform.assign(group)
    check(group, assignment)
    sizes = [len(flat(assignment[name])) for name in members]
    assert max(sizes) - min(sizes) <= 1


@given(topics_of_groups, names, names)
def test_uniform_moves_no_more_than_it_must(topics: dict[bytes, int], before: list[str], after: list[str]) -> None:
    first = uniform.assign(spec(topics, {name: list(topics) for name in before}))
    group = spec(topics, {name: list(topics) for name in after}, first)
    second = uniform.assign(group)
    check(group, second)
    sizes = [len(flat(second[name])) for name in after]
    assert max(sizes) - min(sizes) <= 1
    least, more = divmod(len(all_of(topics)), len(after))
    kept = sum(len(flat(second[name]) & flat(first[name])) for name in after if name in first)
    # Of those who stay, as many as may have one more are those who have most.
    old = sorted((len(flat(first[name])) for name in after if name in first), reverse=True)
    possible = sum(min(size, least + (place < more)) for place, size in enumerate(old))
    assert kept == possible


@given(topics_of_groups, names)
def test_nothing_moves_where_nothing_changes(topics: dict[bytes, int], members: list[str]) -> None:
    subscriptions = {name: list(topics) for name in members}
    first = uniform.assign(spec(topics, subscriptions))
    assert uniform.assign(spec(topics, subscriptions, first)) == first


@st.composite
def mixed_groups(draw: st.DrawFn) -> tuple[dict[bytes, int], dict[str, list[bytes]]]:
    topics = draw(topics_of_groups)
    wanted = st.lists(st.sampled_from(sorted(topics)), unique=True)
    return topics, {name: draw(wanted) for name in draw(names)}


@given(mixed_groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_different_subscriptions(group: tuple[dict[bytes, int], dict[str, list[bytes]]], assignor: str) -> None:
    asked = spec(*group)
    assignment = ASSIGNORS[assignor](asked)
    check(asked, assignment)
    assert ASSIGNORS[assignor](asked) == assignment
    reordered = GroupSpec(dict(reversed(asked.members.items())), asked.partitions, asked.homogeneous)
    assert ASSIGNORS[assignor](reordered) == assignment


@given(mixed_groups(), mixed_groups())
def test_subscriptions_that_overlap_are_balanced_as_far_as_they_can_be(
    before: tuple[dict[bytes, int], dict[str, list[bytes]]], after: tuple[dict[bytes, int], dict[str, list[bytes]]]
) -> None:
    topics = {**before[0], **after[0]}
    first = overlapping.assign(spec(topics, before[1]))
    group = spec(topics, after[1], first)
    second = overlapping.assign(group)
    check(group, second)
    sizes = {name: len(flat(partitions)) for name, partitions in second.items()}
    for name, partitions in second.items():
        for topic in partitions:
            for other, member in group.members.items():
                if topic in member.topics:
                    assert sizes[name] - sizes[other] <= 1, "a partition of this topic could move"


@given(mixed_groups())
def test_overlapping_subscriptions_are_sticky(group: tuple[dict[bytes, int], dict[str, list[bytes]]]) -> None:
    first = overlapping.assign(spec(*group))
    assert overlapping.assign(spec(*group, first)) == first


def test_range_gives_each_the_same_numbers_of_all_topics() -> None:
    topics = {TOPICS[0]: 3, TOPICS[1]: 3}
    assignment = range_assignor.assign(spec(topics, {"b": list(topics), "a": list(topics)}))
    assert assignment == {
        "a": {TOPICS[0]: {0, 1}, TOPICS[1]: {0, 1}},
        "b": {TOPICS[0]: {2}, TOPICS[1]: {2}},
    }


def test_range_puts_static_members_first() -> None:
    members = {
        "a": MemberSpec(frozenset({TOPICS[0]}), {}),
        "c": MemberSpec(frozenset({TOPICS[0]}), {}, "y"),
        "b": MemberSpec(frozenset({TOPICS[0]}), {}, "z"),
    }
    assignment = range_assignor.assign(GroupSpec(members, {TOPICS[0]: 3}, True))
    assert assignment == {"c": {TOPICS[0]: {0}}, "b": {TOPICS[0]: {1}}, "a": {TOPICS[0]: {2}}}


@pytest.mark.parametrize("assignor", sorted(ASSIGNORS))
def test_who_reads_nothing_gets_nothing(assignor: str) -> None:
    assert not ASSIGNORS[assignor](GroupSpec({}, {}, True))
    assert not flat(ASSIGNORS[assignor](spec({}, {"a": []})).get("a", {}))


def test_a_member_with_a_topic_of_its_own_leaves_the_shared_one_to_others() -> None:
    shared, own = TOPICS[:2]
    assignment = overlapping.assign(spec({shared: 4, own: 4}, {"a": [shared, own], "b": [shared]}))
    assert assignment == {"a": {own: {0, 1, 2, 3}}, "b": {shared: {0, 1, 2, 3}}}
