"""What ListTransactions and DescribeTransactions are told."""

from __future__ import annotations

import pytest

from kwire.coordinator.transactions.listing import Filter, describe_transaction
from kwire.coordinator.transactions.states import BY_TITLE, TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.stage import Stage


def names(stage: Stage, wanted: Filter = Filter()) -> set[str]:  # noqa: B008
    known = stage.machine.transactions.committed_items()
    return {name for name, found in known if wanted.takes(name, found, stage.now)}


@pytest.fixture
def stage() -> Stage:
    """An empty one, and an open one of 50 ms."""
    stage = Stage()
    stage.init("empty")
    stage.add(stage.init("open"), 0, transactional_id="open")
    stage.pass_time(50)
    return stage


def test_all_are_listed(stage: Stage) -> None:
    assert names(stage) == {"empty", "open"}


def test_filters(stage: Stage) -> None:
    assert names(stage, Filter(states=[TransactionState.ONGOING])) == {"open"}
    assert names(stage, Filter(states=[])) == set()
    assert names(stage, Filter(producer_ids=[1000])) == {"empty"}
    assert names(stage, Filter(producer_ids=[7])) == set()
    assert names(stage, Filter(matches=lambda name: name.startswith("o"))) == {"open"}
    assert names(stage, Filter(states=[TransactionState.ONGOING], producer_ids=[1000])) == set()


def test_what_has_not_begun_is_older_than_anything(stage: Stage) -> None:
    assert names(stage, Filter(longer_than_ms=49)) == {"empty", "open"}
    assert names(stage, Filter(longer_than_ms=50)) == {"empty"}


def test_only_what_is_committed_is_told(stage: Stage) -> None:
    stage.commits = False
    stage.init("new")
    assert names(stage) == {"empty", "open"}
    with pytest.raises(KafkaError) as raised:
        describe_transaction(stage.machine, "new")
    assert raised.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    stage.commit()
    assert describe_transaction(stage.machine, "new").state is TransactionState.EMPTY


def test_states_have_kafkas_names() -> None:
    assert set(BY_TITLE) == {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
