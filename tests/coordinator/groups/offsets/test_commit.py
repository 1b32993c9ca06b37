"""OffsetCommit, OffsetFetch and OffsetDelete: who may, and what is kept."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.offsets.delete import forget_topics
from kwire.coordinator.groups.offsets.fetch import fetch, fetch_stable
from kwire.protocol import uuids
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.coordinator_records.offset_commit import OffsetCommitValue
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kwire.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kwire.protocol.version_prefixed import encode_version_prefixed
from tests.coordinator.groups.classic.members import Member, group_of, refused, stable_group
from tests.coordinator.groups.desk import EPOCH_MS, Desk
from tests.coordinator.groups.offsets.committing import GROUP, remove, stable, store, stored

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
A_ID, ANOTHER_ID = b"id of a, 16 long", b"id of another a!"


def commit_as(desk: Desk, member: Member, *, version: int = 9) -> None:
    store(
        desk,
        {A0: 1},
        version=version,
        member_id=member.id,
        group_instance_id=member.instance_id,
        generation_id_or_member_epoch=member.generation,
    )


def test_what_is_committed_is_fetched_and_read_back_from_the_log() -> None:
    desk = Desk()
    assert store(desk, {A0: 5, A1: 6}) == {A0: ErrorCode.NONE, A1: ErrorCode.NONE}
    store(desk, {A0: 7})
    assert stored(desk) == stable(desk) == {A0: 7, A1: 6}
    assert stored(desk.reloaded()) == {A0: 7, A1: 6}
    assert group_of(desk).is_empty
    assert stored(desk, "another") == {}


def test_what_was_not_committed_is_minus_one() -> None:
    desk = Desk()
    store(desk, {A0: 5})
    assert stable(desk, A0, A1, B0) == {A0: 5, A1: -1, B0: -1}
    assert stable(desk, A0, group_id="another") == {A0: -1}


def test_all_that_was_said_is_told() -> None:
    desk = Desk()
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_leader_epoch=3, committed_metadata="words"
    )
    topics = [OffsetCommitRequestTopic(name="a", topic_id=A_ID, partitions=[partition])]
    store(desk, {}, topics=topics)
    for each in (desk, desk.reloaded()):
        asked = [OffsetFetchRequestTopics(name="a", topic_id=A_ID, partition_indexes=[0])]
        (topic,) = fetch(each.machine, OffsetFetchRequestGroup(group_id=GROUP, topics=asked)).topics
        (found,) = topic.partitions
        assert topic.topic_id == A_ID
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (5, 3, "words")
        assert each.machine.offsets.get(GROUP, A0).topic_id == A_ID  # type: ignore[union-attr]


def store_for(desk: Desk, topic_id: bytes) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    store(desk, {}, topics=[OffsetCommitRequestTopic(name="a", topic_id=topic_id, partitions=[partition])])


@pytest.mark.parametrize(
    ("committed", "asked", "offset"),
    [(A_ID, A_ID, 5), (A_ID, uuids.ZERO, 5), (uuids.ZERO, A_ID, 5), (A_ID, ANOTHER_ID, -1)],
)
def test_what_was_committed_for_another_topic_of_the_name(committed: bytes, asked: bytes, offset: int) -> None:
    desk = Desk()
    store_for(desk, committed)
    topics = [OffsetFetchRequestTopics(name="a", topic_id=asked, partition_indexes=[0])]
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    (topic,) = fetch(desk.machine, request).topics
    assert topic.partitions[0].committed_offset == offset
    (topic,) = desk.run(lambda machine, now: fetch_stable(machine, request)).topics
    assert topic.partitions[0].committed_offset == offset


@pytest.mark.parametrize(
    ("length", "code"), [(4096, ErrorCode.NONE), (4097, ErrorCode.OFFSET_METADATA_TOO_LARGE), (None, ErrorCode.NONE)]
)
def test_metadata_has_a_limit(length: int | None, code: ErrorCode) -> None:
    desk = Desk()
    metadata = None if length is None else "m" * length
    assert store(desk, {A0: 5}, metadata=metadata) == {A0: code}
    assert (A0 in stored(desk)) == (code is ErrorCode.NONE)


def test_metadata_is_measured_as_java_does() -> None:
    desk = Desk({"offset.metadata.max.bytes": "4"})
    assert store(desk, {A0: 5}, metadata="\U0001f600" * 2) == {A0: ErrorCode.NONE}
    assert store(desk, {A0: 5}, metadata="ü" * 4) == {A0: ErrorCode.NONE}
    assert store(desk, {A0: 5}, metadata="\U0001f600" * 2 + "m") == {A0: ErrorCode.OFFSET_METADATA_TOO_LARGE}


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_no_group(version: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        store(Desk(), {A0: 1}, version=version, generation_id_or_member_epoch=0)
    assert raised.value.code is code


def test_members_of_the_generation_alone_may_commit() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk, instance_id="two")
    stable_group(desk, one, two)
    commit_as(desk, one)
    commit_as(desk, two)
    stranger = Member(desk)
    assert refused(commit_as, desk, stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.id, stranger.generation = "stranger", one.generation
    assert refused(commit_as, desk, stranger) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.instance_id = "two"
    assert refused(commit_as, desk, stranger) is ErrorCode.FENCED_INSTANCE_ID
    one.generation -= 1
    assert refused(commit_as, desk, one) is ErrorCode.ILLEGAL_GENERATION


def test_commits_in_the_course_of_a_rebalance() -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    commit_as(desk, one)
    one.join()
    two.joined()
    assert refused(commit_as, desk, one) is ErrorCode.REBALANCE_IN_PROGRESS
    one.sync()
    commit_as(desk, one)


def test_a_commit_keeps_its_member_alive() -> None:
    desk = Desk()
    member = Member(desk)
    stable_group(desk, member)
    for _ in range(3):
        desk.pass_time(9_000)
        commit_as(desk, member)
    assert member.heartbeat() is ErrorCode.NONE


def test_an_empty_group_takes_commits_of_admins() -> None:
    desk = Desk()
    member = Member(desk)
    stable_group(desk, member)
    assert refused(store, desk, {A0: 1}) is ErrorCode.UNKNOWN_MEMBER_ID
    member.leave()
    assert store(desk, {A0: 1}) == {A0: ErrorCode.NONE}


@pytest.mark.parametrize(("retention_ms", "version", "expires_ms"), [(-1, 3, -1), (60_000, 1, 60_000), (0, 1, 0)])
def test_the_record_of_a_commit_with_a_retention_of_its_own(retention_ms: int, version: int, expires_ms: int) -> None:
    desk = Desk()
    store(desk, {A0: 5}, version=4, retention_time_ms=retention_ms)
    record = desk.last_record()
    assert isinstance(record.value, OffsetCommitValue)
    assert record.version == version
    now = EPOCH_MS + desk.ms
    assert record.value.commit_timestamp == now
    assert record.value.expire_timestamp == (-1 if expires_ms == -1 else now + expires_ms)
    assert record.value.topic_id == uuids.ZERO


def test_an_append_that_fails_takes_the_offset_back() -> None:
    desk = Desk()
    store(desk, {A0: 5})
    desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert refused(store, desk, {A0: 6, A1: 1}) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stored(desk) == stable(desk) == {A0: 5}


def test_what_is_not_stored_yet_is_told_to_nobody_who_does_not_wait() -> None:
    desk = Desk()
    store(desk, {A0: 5})
    desk.machine.timeline.begin()
    desk.machine.offsets.put(GROUP, A0, desk.machine.offsets.get(GROUP, A0)._replace(offset=6), None)  # type: ignore[union-attr]
    desk.machine.timeline.end()
    assert stored(desk) == {A0: 5}
    assert stable(desk) == {A0: 6}


# OffsetDelete


def test_offsets_are_deleted_one_by_one() -> None:
    desk = Desk()
    store(desk, {A0: 1, A1: 2, B0: 3})
    assert remove(desk, A0, B0, ("c", 0)) == {A0: ErrorCode.NONE, B0: ErrorCode.NONE, ("c", 0): ErrorCode.NONE}
    assert stored(desk) == stored(desk.reloaded()) == {A1: 2}
    assert len(desk.log) == 5  # three commits, two tombstones


def test_no_offsets_are_deleted_of_what_is_read() -> None:
    desk = Desk()
    member = Member(desk)
    member.join(encode_version_prefixed(ConsumerProtocolSubscription(topics=["a"]), 1))
    desk.settle()
    member.joined()
    member.sync()
    store(desk, {A0: 1, B0: 2}, member_id=member.id, generation_id_or_member_epoch=member.generation)
    assert remove(desk, A0, B0) == {A0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, B0: ErrorCode.NONE}
    assert stored(desk) == {A0: 1}
    member.leave()
    assert remove(desk, A0) == {A0: ErrorCode.NONE}


def test_no_offsets_are_deleted_where_nobody_can_tell_what_is_read() -> None:
    desk = Desk()
    member = Member(desk)
    stable_group(desk, member)
    assert group_of(desk).subscribed_topics is None
    assert remove(desk, A0) == {A0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_no_offsets_are_deleted_while_the_first_consumers_join() -> None:
    """What they read is known when the rebalance is complete."""
    desk = Desk()
    store(desk, {A0: 1})
    Member(desk).join(encode_version_prefixed(ConsumerProtocolSubscription(topics=["b"]), 1))
    assert remove(desk, A0) == {A0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    desk.settle()
    assert remove(desk, A0) == {A0: ErrorCode.NONE}


def test_groups_that_offsets_cannot_be_deleted_of() -> None:
    desk = Desk()
    assert refused(remove, desk, A0) is ErrorCode.GROUP_ID_NOT_FOUND
    stable_group(desk, Member(desk, protocol_type="connect"))
    assert refused(remove, desk, A0) is ErrorCode.NON_EMPTY_GROUP


# Deleted topics


def test_the_offsets_of_deleted_topics_go() -> None:
    desk = Desk()
    store(desk, {A0: 1, A1: 2, B0: 3})
    store(desk, {A0: 4}, group_id="another")
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID, "c": A_ID})) is False
    assert (stored(desk), stored(desk, "another")) == ({B0: 3}, {})
    assert stored(desk.reloaded()) == {B0: 3}


def test_what_has_been_committed_for_a_new_topic_of_the_name_stays() -> None:
    desk = Desk()
    store_for(desk, ANOTHER_ID)
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID})) is False
    assert stored(desk) == {A0: 5}
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": ANOTHER_ID})) is False
    assert stored(desk) == {}


def test_they_go_in_portions() -> None:
    desk = Desk()
    store(desk, {("a", index): index for index in range(1500)})
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID})) is True
    assert len(stored(desk)) == 500
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID})) is False
    assert stored(desk) == {}


def test_a_portion_is_no_larger_than_a_batch_may_be() -> None:
    desk = Desk()
    for index in range(20):
        store(desk, {A0: 1}, group_id=f"{index:030000}")
    rounds = 0
    while desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID})):
        rounds += 1
    assert rounds == 2
    assert len(desk.machine.offsets.by_group) == 0
