"""InitProducerId for transactional ids: new ones, those in use, those of a client that goes on, and run out epochs."""

from __future__ import annotations

import pytest

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.init_producer_id import check
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import Transaction
from kwire.protocol.errors import ErrorCode
from tests.coordinator.transactions.stage import START, TIMEOUT_MS, Stage, code_of

EXHAUSTED = 32766


def test_a_new_transactional_id_gets_a_producer_id_with_epoch_0() -> None:
    stage = Stage()
    assert stage.init() == Producer(1000, 0)
    assert stage.transaction() == Transaction(
        1000, 0, TIMEOUT_MS, TransactionState.EMPTY, START.wall_ms, previous_producer_id=1000
    )


def test_the_next_instance_gets_the_next_epoch_and_its_own_timeout() -> None:
    stage = Stage()
    stage.init()
    stage.pass_time(5)
    assert stage.init(timeout_ms=7) == Producer(1000, 1)
    assert (stage.transaction().timeout_ms, stage.transaction().update_ms) == (7, START.wall_ms + 5)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [
        ("", 1, ErrorCode.INVALID_REQUEST),
        ("", 0, ErrorCode.INVALID_REQUEST),
        ("t", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", -1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", 1, ErrorCode.NONE),
        ("t", 900000, ErrorCode.NONE),
        ("t", 900001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_what_is_asked_for_is_within_bounds(transactional_id: str, timeout_ms: int, code: ErrorCode) -> None:
    assert code_of(check, transactional_id, timeout_ms, 900000) is code


def test_while_a_write_is_on_its_way_the_others_wait() -> None:
    stage = Stage()
    stage.commits = False
    stage.init()
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.commit()
    assert stage.init() == Producer(1000, 1)


def test_a_write_that_fails_leaves_nothing() -> None:
    stage = Stage()
    stage.commits = False
    stage.init()
    stage.fail()
    assert len(stage.machine.transactions) == 0
    stage.commits = True
    assert stage.init() == Producer(1001, 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first_and_its_producer_fenced(version: int) -> None:
    stage = Stage(version)
    first = stage.init()
    stage.add(first, 0)
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert stage.transaction().state is TransactionState.PREPARE_ABORT
    assert stage.transaction().epoch == 1
    assert stage.transaction().client_version == (2 if version == 2 else 0)
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS  # the markers are not written yet
    assert code_of(stage.add, first, 1) is ErrorCode.CONCURRENT_TRANSACTIONS
    (due,) = stage.write_markers()
    assert due.transaction.partitions == {("topic", 0)}
    assert not due.transaction.commits
    assert code_of(stage.add, first, 1) is ErrorCode.PRODUCER_FENCED
    assert stage.init() == Producer(1000, 2)


def test_a_failed_fence_is_tried_again_with_the_same_epoch() -> None:
    stage = Stage()
    first = stage.init()
    stage.add(first, 0)
    stage.commits = False
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.fail()
    assert stage.transaction().state is TransactionState.ONGOING
    stage.commits = True
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.write_markers()
    assert stage.init() == Producer(1000, 2)


def test_a_client_that_goes_on_gets_the_next_epoch_and_the_same_when_it_asks_again() -> None:
    stage = Stage()
    first = stage.init()
    second = stage.init(expected=first)
    assert second == Producer(1000, 1)
    assert stage.init(expected=first) == second  # the answer was lost
    assert stage.init(expected=second) == Producer(1000, 2)
    assert code_of(stage.init, expected=first) is ErrorCode.PRODUCER_FENCED


def test_another_instance_fences_the_client_that_wants_to_go_on() -> None:
    stage = Stage()
    first = stage.init()
    stage.init()
    assert code_of(stage.init, expected=first) is ErrorCode.PRODUCER_FENCED
    assert code_of(stage.init, expected=Producer(1, 1)) is ErrorCode.PRODUCER_FENCED


def test_a_client_that_goes_on_with_a_forgotten_transactional_id_gets_a_new_producer_id() -> None:
    assert Stage().init(expected=Producer(7, 3)) == Producer(1000, 0)


def test_the_epoch_before_is_forgotten_with_the_coordinator() -> None:
    stage = Stage()
    first = stage.init()
    stage.init(expected=first)
    stage.reload()
    assert code_of(stage.init, expected=first) is ErrorCode.PRODUCER_FENCED


def test_a_client_may_go_on_with_the_epoch_before_its_transaction_ended() -> None:
    stage = Stage()
    first = stage.init()
    stage.add(first, 0)
    second = stage.end(first)
    stage.write_markers()
    assert stage.init(expected=first) == second


def test_run_out_epochs_bring_a_new_producer_id() -> None:
    stage = Stage()
    stage.init()
    stage.set_epoch(EXHAUSTED)
    assert stage.init() == Producer(1001, 0)
    assert stage.transaction().previous_producer_id == 1000


def test_a_client_that_goes_on_gets_a_new_producer_id_and_the_same_when_it_asks_again() -> None:
    stage = Stage()
    stage.init()
    last = stage.set_epoch(EXHAUSTED)
    new = stage.init(expected=last)
    assert new == Producer(1001, 0)
    assert stage.init(expected=last) == new
    assert code_of(stage.init, expected=Producer(1000, 3)) is ErrorCode.PRODUCER_FENCED


def test_a_client_of_an_older_epoch_cannot_go_on_where_there_are_none_left() -> None:
    stage = Stage()
    stage.init()
    stage.set_epoch(EXHAUSTED)
    assert code_of(stage.init, expected=Producer(1000, 3)) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [0, 2])
def test_fencing_the_last_epoch_leads_to_a_new_producer_id(version: int) -> None:
    stage = Stage(version)
    stage.init()
    last = stage.set_epoch(EXHAUSTED)
    stage.add(last, 0)
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    (due,) = stage.write_markers()
    assert due.transaction.producer == Producer(1000, 32767)
    assert stage.init() == (Producer(1001, 0) if version == 0 else Producer(1001, 1))
