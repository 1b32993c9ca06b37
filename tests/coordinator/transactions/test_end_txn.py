"""Transactions end: by clients that keep their epoch, and by those of version 2, whose epoch goes up each time."""

from __future__ import annotations

import pytest

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.completion import complete
from kwire.coordinator.transactions.effects import MarkersDue
from kwire.coordinator.transactions.end_txn import NO_PRODUCER
from kwire.coordinator.transactions.states import TransactionState
from kwire.protocol.errors import ErrorCode
from tests.coordinator.transactions.stage import Stage, code_of

LAST = 32766
FENCED = ErrorCode.PRODUCER_FENCED
INVALID = ErrorCode.INVALID_TXN_STATE
DONE = ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_in_two_steps(version: int, commit: bool) -> None:
    stage = Stage(version)
    producer = stage.init()
    stage.add(producer, 0, 1)
    goes_on_as = stage.end(producer, commit=commit)
    prepared = stage.transaction()
    assert prepared.state is (TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT)
    assert prepared.commits is commit
    assert prepared.partitions == {("topic", 0), ("topic", 1)}
    assert prepared.epoch == (1 if version == 2 else 0)
    assert goes_on_as == (Producer(producer.id, 1) if version == 2 else NO_PRODUCER)
    assert stage.write_markers() == [MarkersDue("t", prepared)]
    ended = stage.transaction()
    assert ended.state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert (ended.partitions, ended.producer, ended.start_ms) == (frozenset(), prepared.producer, prepared.start_ms)


def test_markers_are_due_when_the_decision_is_committed_and_not_before() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.commits = False
    stage.end(producer)
    assert stage.noted.due == []
    assert code_of(stage.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.commit()
    assert len(stage.noted.due) == 1


def test_a_decision_that_cannot_be_written_is_none() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.commits = False
    stage.end(producer)
    stage.fail()
    stage.commits = True
    assert stage.noted.due == []
    assert stage.transaction().state is TransactionState.ONGOING
    assert stage.end(producer, commit=False) == Producer(producer.id, 1)


@pytest.mark.parametrize("version", [1, 2])
def test_nobody_is_fenced_by_what_may_be_taken_back(version: int) -> None:
    stage = Stage(version)
    producer = stage.init()
    stage.commits = False
    stage.init()
    assert code_of(stage.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.fail()
    stage.commits = True
    stage.add(producer, 0)
    stage.end(producer)


def test_an_end_that_is_on_its_way_is_not_written_twice_and_again_where_it_is_lost() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.end(producer)
    (due,) = stage.noted.due
    stage.commits = False
    stage.do(complete, due)
    stage.do(complete, due)
    stage.fail()
    assert stage.transaction() == due.transaction
    stage.commits = True
    stage.do(complete, due)
    assert stage.transaction().state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("version", [1, 2])
def test_who_may_end(version: int) -> None:
    stage = Stage(version)
    producer = stage.init()
    stage.add(producer, 0)
    assert code_of(stage.end, producer, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert code_of(stage.end, producer, transactional_id="other") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(stage.end, Producer(7, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(stage.end, Producer(producer.id, 1)) is FENCED
    assert code_of(stage.end, Producer(producer.id, -1)) is FENCED
    assert stage.transaction().state is TransactionState.ONGOING


def test_while_markers_are_written_a_client_that_keeps_its_epoch_is_told_what_is_wrong() -> None:
    stage = Stage(1)
    producer = stage.init()
    stage.add(producer, 0)
    stage.end(producer)
    assert code_of(stage.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(stage.end, producer, commit=False) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(stage.end, Producer(producer.id, 1)) is FENCED
    assert code_of(stage.end, Producer(7, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_while_markers_are_written_every_client_of_version_2_waits() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.end(producer)
    for who in (producer, Producer(producer.id, 1), Producer(7, 0)):
        assert code_of(stage.end, who) is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("ended_by", "commit", "code"),
    [(None, True, INVALID), (None, False, INVALID), (True, True, DONE), (True, False, INVALID), (False, False, DONE)],
)
def test_an_end_asked_for_again_by_a_client_that_keeps_its_epoch(
    ended_by: bool | None, commit: bool, code: ErrorCode
) -> None:
    stage = Stage(1)
    producer = stage.init()
    if ended_by is not None:
        stage.add(producer, 0)
        stage.end(producer, commit=ended_by)
        stage.write_markers()
    assert code_of(stage.end, producer, commit=commit) is code
    assert stage.noted.due == []


@pytest.mark.parametrize(
    ("ended_by", "again", "commit", "code"),
    [
        (None, True, False, FENCED),
        (None, False, False, DONE),
        (None, True, True, FENCED),
        (None, False, True, INVALID),
        (False, True, False, DONE),
        (False, False, False, DONE),
        (False, True, True, INVALID),
        (False, False, True, INVALID),
        (True, True, False, INVALID),
        (True, False, False, DONE),
        (True, True, True, DONE),
        (True, False, True, INVALID),
    ],
)
def test_the_table_of_version_2(ended_by: bool | None, again: bool, commit: bool, code: ErrorCode) -> None:
    stage = Stage()
    producer = stage.init()
    if ended_by is not None:
        stage.add(producer, 0)
        producer = stage.end(producer, commit=ended_by)
        stage.write_markers()
    who = Producer(producer.id, producer.epoch - 1) if again else producer
    if code is not DONE:
        assert code_of(stage.end, who, commit=commit) is code
        assert stage.noted.due == []
    elif again:
        assert stage.end(who, commit=commit) == producer
        assert stage.noted.due == []
    else:
        assert stage.end(who, commit=commit) == Producer(producer.id, producer.epoch + 1)
        (due,) = stage.write_markers()
        assert due.transaction.partitions == frozenset()
        assert stage.transaction().state is TransactionState.COMPLETE_ABORT


def test_an_abort_of_what_has_not_begun_starts_now() -> None:
    stage = Stage()
    producer = stage.init()
    stage.pass_time(3)
    stage.end(producer, commit=False)
    assert stage.transaction().start_ms == stage.now.wall_ms


def test_when_the_epochs_run_out_the_client_goes_on_with_a_new_producer_id() -> None:
    stage = Stage()
    stage.init()
    producer = stage.set_epoch(LAST)
    stage.add(producer, 0)
    new = stage.end(producer)
    assert new == Producer(1001, 0)
    prepared = stage.transaction()
    assert (prepared.producer, prepared.next_producer_id) == (Producer(1000, 32767), 1001)
    assert code_of(stage.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(stage.add, new, 1) is ErrorCode.CONCURRENT_TRANSACTIONS
    (due,) = stage.write_markers()
    assert due.transaction.producer == Producer(1000, 32767)
    ended = stage.transaction()
    assert (ended.producer, ended.previous_producer_id, ended.next_producer_id) == (new, 1000, -1)
    assert stage.end(producer) == new  # asked again
    assert code_of(stage.end, producer, commit=False) is INVALID
    stage.add(new, 1)
    assert code_of(stage.end, producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_new_producer_id_lasts_over_a_new_coordinator() -> None:
    stage = Stage()
    stage.init()
    producer = stage.set_epoch(LAST)
    stage.add(producer, 0)
    new = stage.end(producer)
    stage.reload()
    stage.write_markers()
    stage.reload()
    assert stage.transaction().producer == new
    assert stage.end(producer) == new


def test_a_client_that_keeps_its_epoch_never_needs_another_producer_id() -> None:
    stage = Stage(1)
    stage.init()
    producer = stage.set_epoch(LAST)
    stage.add(producer, 0)
    stage.end(producer)
    stage.write_markers()
    assert stage.transaction().producer == producer


def test_clients_of_both_kinds_may_use_a_transactional_id_in_turn() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0, client_version=0)
    assert stage.end(producer, client_version=0) == NO_PRODUCER
    stage.write_markers()
    stage.add(producer, 0)
    after = stage.end(producer)
    assert after == Producer(producer.id, 1)
    stage.write_markers()
    stage.add(after, 0, client_version=0)
    stage.end(after, client_version=0)
    (due,) = stage.write_markers()
    assert (due.transaction.producer, due.transaction.client_version) == (after, 0)


def test_only_what_waits_for_markers_can_be_completed() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.end(producer)
    (due,) = stage.write_markers()
    assert code_of(stage.do, complete, due) is INVALID
    assert code_of(stage.do, complete, due._replace(transactional_id="other")) is INVALID


def test_a_transaction_begun_by_version_2_is_completed_after_a_downgrade() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.end(producer)
    stage.version = 0
    stage.reload()
    stage.write_markers()
    assert stage.transaction().state is TransactionState.COMPLETE_COMMIT


def test_a_prepared_transaction_goes_on_with_the_next_coordinator() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0, 1)
    stage.end(producer, commit=False)
    before = stage.transaction()
    stage.reload()
    assert stage.noted.due == [MarkersDue("t", before)]
    stage.write_markers()
    stage.reload()
    assert stage.noted.due == []
