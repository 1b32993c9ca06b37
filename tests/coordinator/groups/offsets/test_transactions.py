"""Offsets in transactions: pending until the marker, and who wins."""

from __future__ import annotations

import pytest

from kwire.coordinator.groups.admin import delete_group
from kwire.coordinator.groups.offsets.delete import forget_topics
from kwire.coordinator.runtime.outcome import Producer
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.classic.members import Member, refused, stable_group
from tests.coordinator.groups.desk import Desk
from tests.coordinator.groups.offsets.committing import GROUP, remove, stable, store, store_in_transaction, stored

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
A_ID = b"id of a, 16 long"
ONE, TWO = Producer(1, 0), Producer(2, 5)


def test_they_count_when_the_transaction_is_committed() -> None:
    desk = Desk()
    store(desk, {A0: 1})
    assert store_in_transaction(desk, ONE, {A0: 5, A1: 6}) == {A0: ErrorCode.NONE, A1: ErrorCode.NONE}
    assert stored(desk) == {A0: 1}
    assert stable(desk) == {A0: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    assert stable(desk, A0, A1, B0) == {
        A0: ErrorCode.UNSTABLE_OFFSET_COMMIT,
        A1: ErrorCode.UNSTABLE_OFFSET_COMMIT,
        B0: -1,
    }
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == stable(desk) == {A0: 5, A1: 6}


def test_they_are_forgotten_when_it_is_aborted() -> None:
    desk = Desk()
    store(desk, {A0: 1})
    store_in_transaction(desk, ONE, {A0: 5})
    desk.end_transaction(ONE, commit=False)
    assert stored(desk) == stable(desk) == {A0: 1}


def test_the_later_commit_counts_though_its_transaction_began_before() -> None:
    desk = Desk()
    store_in_transaction(desk, ONE, {A0: 5, A1: 5})
    store(desk, {A0: 7})
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == {A0: 7, A1: 5}


def test_of_two_transactions_the_later_commit_counts_too() -> None:
    desk = Desk()
    store_in_transaction(desk, ONE, {A0: 5})
    store_in_transaction(desk, TWO, {A0: 6})
    desk.end_transaction(TWO, commit=True)
    assert stable(desk) == {A0: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == stable(desk) == {A0: 6}


def test_a_transaction_may_commit_twice() -> None:
    desk = Desk()
    store_in_transaction(desk, ONE, {A0: 5})
    store_in_transaction(desk, ONE, {A0: 6})
    store_in_transaction(desk, ONE, {A0: 7}, group_id="another")
    desk.end_transaction(ONE, commit=True)
    desk.end_transaction(ONE, commit=True)
    assert (stored(desk), stored(desk, "another")) == ({A0: 6}, {A0: 7})


def test_an_append_that_fails_leaves_nothing_pending() -> None:
    desk = Desk()
    desk.failure = KafkaError(ErrorCode.NOT_COORDINATOR)
    assert refused(store_in_transaction, desk, ONE, {A0: 5}) is ErrorCode.NOT_COORDINATOR
    assert stable(desk, A0) == {A0: -1}
    assert GROUP not in desk.machine.groups
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == {}


def test_deleting_an_offset_deletes_what_is_pending_for_it() -> None:
    desk = Desk()
    store_in_transaction(desk, ONE, {A0: 5, A1: 6})
    assert remove(desk, A0) == {A0: ErrorCode.NONE}
    assert stable(desk, A0, A1) == {A0: -1, A1: ErrorCode.UNSTABLE_OFFSET_COMMIT}
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == {A1: 6}


def test_deleting_a_topic_deletes_what_is_pending_for_it() -> None:
    desk = Desk()
    store_in_transaction(desk, ONE, {A0: 5, B0: 6})
    store_in_transaction(desk, TWO, {A0: 5})
    assert desk.run(lambda machine, now: forget_topics(machine, {"a": A_ID})) is False
    desk.end_transaction(ONE, commit=True)
    desk.end_transaction(TWO, commit=True)
    assert stored(desk) == {B0: 6}


def test_deleting_a_group_deletes_what_is_pending_for_it() -> None:
    desk = Desk()
    store(desk, {A0: 1})
    store_in_transaction(desk, ONE, {A0: 5, A1: 6})
    desk.run(lambda machine, now: delete_group(machine, GROUP))
    assert GROUP not in desk.machine.groups
    desk.end_transaction(ONE, commit=True)
    assert stored(desk) == {}
    store(desk, {B0: 2})
    assert stored(desk) == stable(desk) == {B0: 2}


def test_metadata_has_a_limit() -> None:
    desk = Desk()
    codes = store_in_transaction(desk, ONE, {A0: 5}, metadata="m" * 4097)
    assert codes == {A0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert desk.log == []


def test_who_may() -> None:
    desk = Desk()
    member = Member(desk)
    assert refused(lambda: store_in_transaction(desk, ONE, {A0: 1}, generation_id=0)) is ErrorCode.ILLEGAL_GENERATION
    stable_group(desk, member)
    store_in_transaction(desk, ONE, {A0: 1})  # a producer that says nothing of a member

    def by(member_id: str, generation: int, instance_id: str | None = None) -> None:
        told = {"member_id": member_id, "generation_id": generation, "group_instance_id": instance_id}
        store_in_transaction(desk, ONE, {A0: 1}, **told)

    by(member.id, member.generation)
    assert refused(by, member.id, member.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert refused(by, "nobody", member.generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(by, member.id, member.generation, "unknown") is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("commit", [True, False])
def test_a_rebalance_does_not_keep_a_transaction_from_committing(commit: bool) -> None:
    desk = Desk()
    one, two = Member(desk), Member(desk)
    stable_group(desk, one)
    two.join()
    one.join()
    told = {"member_id": one.id, "generation_id": one.generation}
    assert store_in_transaction(desk, ONE, {A0: 3}, **told) == {A0: ErrorCode.NONE}  # though it has not synced
    desk.end_transaction(ONE, commit=commit)
    assert stored(desk) == ({A0: 3} if commit else {})
