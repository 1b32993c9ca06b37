"""What happens by itself: open transactions time out, unused transactional ids are forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.runtime.outcome import Outcome, Producer
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.timeouts import abort
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.stage import TIMEOUT_MS, Stage, code_of

INTERVAL_MS = 10_000
WEEK_MS = 7 * 24 * 3600 * 1000
HOUR_MS = 3600 * 1000


def open_one(stage: Stage) -> Producer:
    producer = stage.init()
    stage.add(producer, 0)
    return producer


def test_an_open_transaction_is_found_late_after_its_timeout() -> None:
    stage = Stage()
    producer = open_one(stage)
    stage.pass_time(TIMEOUT_MS)
    assert stage.noted.late == []  # at the very end of it, it may still be ended
    stage.pass_time(INTERVAL_MS)
    assert stage.noted.late == [("t", producer)]


def test_one_that_ended_in_time_is_not_late() -> None:
    stage = Stage()
    producer = open_one(stage)
    stage.end(producer)
    stage.write_markers()
    stage.pass_time(10 * TIMEOUT_MS)
    assert stage.noted.late == []


def test_the_next_transaction_has_its_own_time() -> None:
    stage = Stage()
    producer = stage.end(open_one(stage))
    stage.write_markers()
    stage.pass_time(TIMEOUT_MS - 1)
    stage.add(producer, 0)
    stage.pass_time(INTERVAL_MS)
    stage.pass_time(INTERVAL_MS)
    assert stage.noted.late == []


def test_a_new_coordinator_keeps_the_time() -> None:
    stage = Stage()
    producer = open_one(stage)
    stage.pass_time(TIMEOUT_MS - 1)
    stage.reload()
    stage.pass_time(INTERVAL_MS)
    assert stage.noted.late == [("t", producer)]


def test_a_new_coordinator_keeps_the_time_of_what_is_committed_later() -> None:
    stage = Stage()
    producer = open_one(stage)
    stage.reload(committed=False)
    stage.pass_time(TIMEOUT_MS + INTERVAL_MS)
    assert stage.noted.late == []
    stage.commit()
    stage.pass_time(INTERVAL_MS)
    assert stage.noted.late == [("t", producer)]


@pytest.mark.parametrize(("timeout_ms", "late"), [(2**31 - 2, 1), (2**31 - 1, 0)])
def test_the_longest_timeout_stands_for_none(timeout_ms: int, late: int) -> None:
    stage = Stage()
    stage.add(stage.init(timeout_ms=timeout_ms), 0)
    stage.pass_time(2**31 + INTERVAL_MS)
    assert len(stage.noted.late) == late


def test_the_interval_is_configured() -> None:
    stage = Stage(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    open_one(stage)
    stage.pass_time(TIMEOUT_MS)
    stage.pass_time(100)
    assert len(stage.noted.late) == 1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_late_is_aborted_and_its_producer_fenced(version: int) -> None:
    stage = Stage(version)
    producer = open_one(stage)
    stage.do(abort, "t", producer)
    (due,) = stage.write_markers()
    assert (due.transaction.commits, due.transaction.epoch) == (False, producer.epoch + 1)
    assert stage.transaction().state is TransactionState.COMPLETE_ABORT
    assert code_of(stage.add, producer, 0) is ErrorCode.PRODUCER_FENCED
    assert code_of(stage.end, producer, commit=version == 2) is not ErrorCode.NONE
    assert stage.init() == Producer(producer.id, producer.epoch + 2)


def test_a_fenced_client_of_version_2_may_go_on() -> None:
    stage = Stage()
    producer = open_one(stage)
    stage.do(abort, "t", producer)
    stage.write_markers()
    assert stage.init(expected=producer) == Producer(producer.id, producer.epoch + 1)


def test_what_is_late_with_the_last_epoch_gets_a_new_producer_id() -> None:
    stage = Stage()
    stage.init()
    last = stage.set_epoch(32766)
    stage.add(last, 0)
    stage.do(abort, "t", last)
    stage.write_markers()
    assert stage.init(expected=last) == Producer(1001, 0)


def test_a_client_that_was_quicker_is_left_alone() -> None:
    stage = Stage()
    producer = open_one(stage)
    after = stage.end(producer)
    assert code_of(stage.do, abort, "t", producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.write_markers()
    assert code_of(stage.do, abort, "t", producer) is ErrorCode.PRODUCER_FENCED
    assert code_of(stage.do, abort, "t", after) is ErrorCode.INVALID_TXN_STATE
    assert code_of(stage.do, abort, "t", Producer(7, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(stage.do, abort, "other", producer) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_unused_transactional_id_is_forgotten() -> None:
    stage = Stage()
    stage.init("idle")
    stage.init()
    stage.pass_time(WEEK_MS - 1)
    stage.init()
    stage.pass_time(HOUR_MS)
    assert [name for name, _ in stage.machine.transactions.items()] == ["t"]
    stage.reload()
    assert [name for name, _ in stage.machine.transactions.items()] == ["t"]
    assert stage.init("idle") == Producer(1002, 0)


def test_open_and_prepared_transactions_are_never_forgotten() -> None:
    stage = Stage()
    open_one(stage)
    producer = stage.init("prepared")
    stage.add(producer, 0, transactional_id="prepared")
    stage.end(producer, transactional_id="prepared")
    stage.pass_time(WEEK_MS)
    stage.pass_time(WEEK_MS)
    assert len(stage.machine.transactions) == 2


def test_ended_transactions_are_forgotten_too() -> None:
    stage = Stage()
    stage.end(open_one(stage))
    stage.write_markers()
    stage.pass_time(WEEK_MS + HOUR_MS)
    assert len(stage.machine.transactions) == 0


def test_what_is_being_forgotten_is_to_be_waited_for() -> None:
    stage = Stage()
    producer = stage.init()
    stage.commits = False
    stage.pass_time(WEEK_MS + HOUR_MS)
    assert code_of(stage.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(stage.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.fail()
    assert stage.transaction().producer == producer


def test_many_are_forgotten_in_several_batches() -> None:
    stage = Stage()
    for number in range(10):
        stage.init(f"{number}" * 9000)
    written = len(stage.log)
    sizes: list[int] = []
    submit = stage.submit

    def noting(outcome: Outcome[Any]) -> None:
        sizes.append(len(outcome.records))
        submit(outcome)

    stage.submit = noting  # type: ignore[method-assign]
    stage.pass_time(WEEK_MS + HOUR_MS)
    assert len(stage.machine.transactions) == 0
    assert (len(stage.log) - written, max(sizes), len(sizes)) == (10, 1, 10)


def test_what_one_batch_cannot_hold_is_forgotten_in_parts() -> None:
    stage = Stage()
    for number in range(10):
        stage.init(f"{number}")
    submit = stage.submit
    sizes: list[int] = []

    def refuse_more_than_three(outcome: Outcome[Any]) -> None:
        sizes.append(len(outcome.records))
        if len(outcome.records) <= 3:
            submit(outcome)
        elif outcome.failed is not None:
            outcome.failed(KafkaError(ErrorCode.MESSAGE_TOO_LARGE), stage.now)

    stage.submit = refuse_more_than_three  # type: ignore[method-assign]
    stage.pass_time(WEEK_MS + HOUR_MS)
    assert len(stage.machine.transactions) == 0
    assert sizes == [10, 5, 5, 2, 3, 2, 3]


def test_nothing_wakes_a_coordinator_without_transactional_ids() -> None:
    stage = Stage()
    assert stage.machine.deadlines.next_ms() is None
    stage.init()
    stage.pass_time(WEEK_MS + HOUR_MS)
    stage.pass_time(HOUR_MS)
    assert stage.machine.deadlines.next_ms() is None
