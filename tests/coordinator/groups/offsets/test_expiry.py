"""When offsets expire, and groups without any (KIP-211)."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.classic.group import ClassicState
from kwire.coordinator.groups.classic.records import VALUE_VERSION
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataKey, GroupMetadataValue
from kwire.protocol.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.version_prefixed import encode_version_prefixed
from tests.coordinator.groups.classic.members import Member, group_of, stable_group
from tests.coordinator.groups.desk import EPOCH_MS, Desk
from tests.coordinator.groups.offsets.committing import GROUP, remove, store, store_in_transaction, stored

A0, B0 = ("a", 0), ("b", 0)
MINUTE, CHECK_MS, RETENTION = 60_000, 10_000, 5 * 60_000
SETTINGS = {"offsets.retention.minutes": "5", "offsets.retention.check.interval.ms": str(CHECK_MS)}


def reads(desk: Desk, *topics: str, protocol_type: str = "consumer") -> Member:
    """A stable group of one member that reads these topics."""
    member = Member(desk, protocol_type=protocol_type)
    member.join(encode_version_prefixed(ConsumerProtocolSubscription(topics=list(topics)), 1))
    desk.settle()
    member.joined()
    member.sync()
    return member


def live(desk: Desk, member: Member, ms: int) -> None:
    """Time goes by for a member that heartbeats."""
    for _ in range(ms // 5000):
        desk.pass_time(5000)
        assert member.heartbeat() is ErrorCode.NONE


def store_as(desk: Desk, member: Member, *partitions: tuple[str, int]) -> None:
    store(
        desk,
        dict.fromkeys(partitions, 1),
        member_id=member.id,
        generation_id_or_member_epoch=member.generation,
    )


def test_commits_without_a_group_expire_each_for_itself() -> None:
    desk = Desk(SETTINGS)
    store(desk, {A0: 1})
    desk.pass_time(3 * MINUTE)
    store(desk, {B0: 2})
    desk.pass_time(2 * MINUTE - CHECK_MS)
    assert stored(desk) == {A0: 1, B0: 2}
    desk.pass_time(CHECK_MS)
    assert stored(desk) == {B0: 2}
    assert GROUP in desk.machine.groups
    desk.pass_time(3 * MINUTE)
    assert stored(desk) == {}
    assert GROUP not in desk.machine.groups
    assert GROUP not in desk.reloaded().machine.groups


def test_the_offsets_of_an_empty_group_expire_when_it_has_been_empty_so_long() -> None:
    desk = Desk(SETTINGS)
    member = reads(desk, "a")
    store_as(desk, member, A0)
    live(desk, member, RETENTION)
    member.leave()
    desk.pass_time(RETENTION - CHECK_MS)
    assert stored(desk) == {A0: 1}
    desk.pass_time(CHECK_MS)
    assert stored(desk) == {}
    assert GROUP not in desk.machine.groups


def test_a_stable_group_keeps_what_it_reads() -> None:
    desk = Desk(SETTINGS)
    member = reads(desk, "a")
    store_as(desk, member, A0, B0)
    live(desk, member, RETENTION + CHECK_MS)
    assert stored(desk) == {A0: 1}
    assert group_of(desk).state is ClassicState.STABLE


def test_nothing_expires_while_nobody_can_tell_what_is_read() -> None:
    desk = Desk(SETTINGS)
    member = Member(desk)
    stable_group(desk, member)
    store_as(desk, member, A0)
    live(desk, member, 2 * RETENTION)
    assert stored(desk) == {A0: 1}


def test_nothing_expires_while_those_who_are_no_consumers_are_there() -> None:
    desk = Desk(SETTINGS)
    member = reads(desk, protocol_type="connect")
    store_as(desk, member, A0)
    live(desk, member, 2 * RETENTION)
    assert stored(desk) == {A0: 1}


def test_nothing_expires_in_a_rebalance() -> None:
    desk = Desk(SETTINGS | {"group.max.session.timeout.ms": "3600000"})
    member = reads(desk, "a")
    store_as(desk, member, A0, B0)
    group_of(desk).members[member.id].rebalance_timeout_ms = 10 * RETENTION
    group_of(desk).members[member.id].session_timeout_ms = 10 * RETENTION
    member.heartbeat()
    Member(desk).join()
    assert group_of(desk).state is ClassicState.PREPARING_REBALANCE
    desk.pass_time(NEW_MEMBER_MS)
    assert stored(desk) == {A0: 1, B0: 1}


NEW_MEMBER_MS = 5 * MINUTE - 1


def test_a_retention_of_its_own_counts_from_the_commit() -> None:
    desk = Desk(SETTINGS)
    store(desk, {A0: 1}, version=4, retention_time_ms=2 * MINUTE)
    store(desk, {B0: 1}, version=4, retention_time_ms=20 * MINUTE)
    desk = Desk(SETTINGS, desk.log)
    desk.pass_time(2 * MINUTE - CHECK_MS)
    assert stored(desk) == {A0: 1, B0: 1}
    desk.pass_time(CHECK_MS)
    assert stored(desk) == {B0: 1}
    desk.pass_time(18 * MINUTE - CHECK_MS)
    assert stored(desk) == {B0: 1}
    desk.pass_time(CHECK_MS)
    assert stored(desk) == {}


def test_offsets_of_open_transactions_keep_others_and_the_group() -> None:
    desk = Desk(SETTINGS)
    producer = Producer(7, 0)
    store(desk, {A0: 1, B0: 1})
    store_in_transaction(desk, producer, {A0: 2})
    desk.pass_time(RETENTION)
    assert stored(desk) == {A0: 1}
    desk.end_transaction(producer, commit=False)
    desk.pass_time(CHECK_MS)
    assert GROUP not in desk.machine.groups


def test_a_group_that_has_open_transactions_alone_stays() -> None:
    desk = Desk(SETTINGS)
    producer = Producer(7, 0)
    store_in_transaction(desk, producer, {A0: 2})
    desk.pass_time(2 * RETENTION)
    assert GROUP in desk.machine.groups
    desk.end_transaction(producer, commit=True)
    assert stored(desk) == {A0: 2}
    desk.pass_time(CHECK_MS)
    assert GROUP not in desk.machine.groups


def test_a_group_goes_though_a_transaction_is_open_whose_offsets_were_deleted() -> None:
    desk = Desk(SETTINGS)
    producer = Producer(7, 0)
    store_in_transaction(desk, producer, {A0: 2})
    remove(desk, A0)
    desk.pass_time(CHECK_MS)
    assert GROUP not in desk.machine.groups
    desk.end_transaction(producer, commit=True)
    assert stored(desk) == {}


def test_an_empty_group_that_has_committed_nothing_goes() -> None:
    desk = Desk(SETTINGS)
    member = reads(desk, "a")
    live(desk, member, 2 * CHECK_MS)
    assert GROUP in desk.machine.groups
    member.leave()
    desk.pass_time(CHECK_MS)
    assert GROUP not in desk.machine.groups


def test_commits_older_than_groups_in_their_records_expire_by_themselves() -> None:
    """A group written before its record said since when it is empty."""
    desk = Desk(SETTINGS)
    store(desk, {A0: 1})
    desk.pass_time(MINUTE)
    value = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader=None, members=[])
    record = CoordinatorRecord(GroupMetadataKey(group=GROUP), value, VALUE_VERSION - 2)
    desk.run(lambda machine, now: Outcome(None, [record]))
    assert group_of(desk).state_since_ms is None
    desk.pass_time(4 * MINUTE)
    assert stored(desk) == {}


def test_what_old_brokers_wrote_expires_too() -> None:
    desk = Desk(SETTINGS)
    key = LegacyOffsetCommitKey(group=GROUP, topic="a", partition=0)
    value = LegacyOffsetCommitValue(offset=3, metadata="old", commit_timestamp=EPOCH_MS + desk.ms)
    desk.run(lambda machine, now: Outcome(None, [CoordinatorRecord(key, value)]))
    assert stored(desk) == stored(desk.reloaded()) == {A0: 3}
    desk.run(lambda machine, now: Outcome(None, [CoordinatorRecord(key, None)]))
    assert stored(desk) == {}
    desk.run(lambda machine, now: Outcome(None, [CoordinatorRecord(key, value)]))
    desk.pass_time(RETENTION)
    assert stored(desk) == {}


def test_many_go_in_portions_one_after_the_other() -> None:
    desk = Desk(SETTINGS)
    store(desk, {("a", index): index for index in range(2500)})
    desk.pass_time(RETENTION)
    assert stored(desk) == {}
    assert GROUP not in desk.machine.groups
    assert len(desk.log) == 2500 + 2500 + 1


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_portion_that_cannot_be_stored_waits_for_the_next_check(rounds: int) -> None:
    desk = Desk(SETTINGS)
    store(desk, {("a", index): index for index in range(2500)})
    desk.pass_time(RETENTION - CHECK_MS)
    for _ in range(rounds):
        desk.failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        with pytest.raises(KafkaError):
            desk.pass_time(CHECK_MS)
        assert len(stored(desk)) == 2500
    desk.pass_time(CHECK_MS)
    assert stored(desk) == {}
