"""A coordinator crashes amid the end of a transaction: its client, who asks again, and nobody else goes on."""

from __future__ import annotations

import pytest

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.effects import MarkersDue
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.timeouts import abort
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.stage import Stage, code_of

LAST = 32766
STEPS = ["nothing", "the decision", "some markers", "the end"]


def end_and_crash(stage: Stage, producer: Producer, *, commit: bool, after: str) -> None:
    """The client gets no answer."""
    stage.commits = after != "nothing"
    stage.end(producer, commit=commit)
    if after == "the end":
        stage.write_markers()
    elif after == "some markers":
        stage.commits = False
        stage.write_markers()
    stage.commits = True
    stage.reload()


def ask_again(stage: Stage, producer: Producer, *, commit: bool) -> tuple[Producer, list[MarkersDue]]:
    """What the client is told in the end, and the markers that were written meanwhile."""
    written = []
    while True:
        try:
            answer = stage.end(producer, commit=commit)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or not stage.noted.due:
                raise
            written += stage.write_markers()
        else:
            return answer, written + stage.write_markers()


@pytest.mark.parametrize("after", STEPS)
@pytest.mark.parametrize("commit", [True, False])
def test_the_end_is_as_asked_for_and_the_client_goes_on(commit: bool, after: str) -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    end_and_crash(stage, producer, commit=commit, after=after)
    answer, written = ask_again(stage, producer, commit=commit)
    assert answer == Producer(producer.id, producer.epoch + 1)
    assert {(due.transaction.commits, due.transaction.epoch) for due in written} <= {(commit, answer.epoch)}
    assert bool(written) is (after != "the end")
    assert stage.transaction().commits is commit
    assert not stage.transaction().partitions
    stage.add(answer, 0)
    stage.end(answer)


@pytest.mark.parametrize("after", STEPS)
@pytest.mark.parametrize("commit", [True, False])
def test_a_client_whose_epochs_run_out_goes_on_with_its_new_producer_id(commit: bool, after: str) -> None:
    stage = Stage()
    stage.init()
    producer = stage.set_epoch(LAST)
    stage.add(producer, 0)
    end_and_crash(stage, producer, commit=commit, after=after)
    answer, written = ask_again(stage, producer, commit=commit)
    assert answer.id != producer.id
    assert answer.epoch == 0
    assert {due.transaction.producer for due in written} <= {Producer(producer.id, LAST + 1)}
    stage.add(answer, 0)
    stage.end(answer)
    stage.write_markers()
    assert code_of(stage.add, producer, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("after", STEPS[1:])
def test_a_commit_is_not_turned_into_an_abort(after: str) -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    end_and_crash(stage, producer, commit=True, after=after)
    stage.write_markers()
    for refused in (stage.do, abort, "t", producer), (stage.do, abort, "t", Producer(producer.id, producer.epoch + 1)):
        assert code_of(*refused) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    assert code_of(stage.end, producer, commit=False) is ErrorCode.INVALID_TXN_STATE
    assert stage.transaction().state is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("after", STEPS[:3])
def test_what_timed_out_is_aborted_and_its_client_may_go_on(after: str) -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    stage.commits = after != "nothing"
    stage.do(abort, "t", producer)
    if after == "some markers":
        stage.commits = False
        stage.write_markers()
    stage.commits = True
    stage.reload()
    if after == "nothing":
        stage.do(abort, "t", producer)
    stage.write_markers()
    assert code_of(stage.end, producer, commit=True) is ErrorCode.INVALID_TXN_STATE
    answer = stage.end(producer, commit=False)
    assert answer == Producer(producer.id, producer.epoch + 1)
    stage.add(answer, 0)
    stage.end(answer)
