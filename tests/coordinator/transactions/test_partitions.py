"""Partitions are added to a transaction, and brokers ask whether they are in it."""

from __future__ import annotations

import pytest

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.partitions import verify_partitions
from kwire.coordinator.transactions.states import TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.stage import START, Stage, code_of


def verify(stage: Stage, producer: Producer, *partitions: int, transactional_id: str = "t") -> list[ErrorCode]:
    asked = [("topic", index) for index in partitions]
    return list(verify_partitions(stage.machine, transactional_id, producer, asked).values())


def test_the_first_partition_begins_the_transaction() -> None:
    stage = Stage()
    producer = stage.init()
    stage.pass_time(5)
    stage.add(producer, 0)
    stage.pass_time(5)
    stage.add(producer, 1, 2)
    found = stage.transaction()
    assert found.state is TransactionState.ONGOING
    assert found.partitions == {("topic", 0), ("topic", 1), ("topic", 2)}
    assert (found.start_ms, found.update_ms) == (START.wall_ms + 5, START.wall_ms + 10)


def test_what_is_in_it_already_writes_nothing() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0, 1)
    written = len(stage.log)
    stage.add(producer, 1)
    assert len(stage.log) == written


def test_the_next_transaction_has_a_start_of_its_own() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    producer = stage.end(producer)
    stage.write_markers()
    stage.pass_time(100)
    stage.add(producer, 1)
    assert stage.transaction().start_ms == START.wall_ms + 100
    assert stage.transaction().partitions == {("topic", 1)}


def test_who_may_add() -> None:
    stage = Stage()
    producer = stage.init()
    assert code_of(stage.add, producer, 0, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert code_of(stage.add, producer, 0, transactional_id="other") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(stage.add, Producer(7, 0), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(stage.add, Producer(producer.id, 1), 0) is ErrorCode.PRODUCER_FENCED
    assert code_of(stage.add, Producer(producer.id, -1), 0) is ErrorCode.PRODUCER_FENCED
    assert stage.transaction().state is TransactionState.EMPTY


@pytest.mark.parametrize("commit", [True, False])
def test_until_the_markers_are_written_nobody_adds(commit: bool) -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    after = stage.end(producer, commit=commit)
    for who in (producer, after, Producer(7, 7)):
        assert code_of(stage.add, who, 1) is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.write_markers()
    assert code_of(stage.add, producer, 1) is ErrorCode.PRODUCER_FENCED
    stage.add(after, 1)


def test_a_client_of_version_2_needs_records_that_can_say_so() -> None:
    stage = Stage(0)
    producer = stage.init()
    assert code_of(stage.add, producer, 0, client_version=2) is ErrorCode.UNSUPPORTED_VERSION
    stage.add(producer, 0)
    assert code_of(stage.end, producer, client_version=2) is ErrorCode.UNSUPPORTED_VERSION


def test_verification_tells_of_each_partition() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0, 2)
    assert verify(stage, producer, 0, 1, 2) == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.NONE,
    ]


def test_verification_goes_by_what_is_committed() -> None:
    stage = Stage()
    producer = stage.init()
    stage.commits = False
    stage.add(producer, 0)
    assert verify(stage, producer, 0) == [ErrorCode.TRANSACTION_ABORTABLE]
    stage.commit()
    assert verify(stage, producer, 0) == [ErrorCode.NONE]


def test_who_may_verify() -> None:
    stage = Stage()
    producer = stage.init()
    stage.add(producer, 0)
    for who, transactional_id, code in (
        (producer, "", ErrorCode.INVALID_REQUEST),
        (producer, "other", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (Producer(7, 0), "t", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (Producer(producer.id, 5), "t", ErrorCode.PRODUCER_FENCED),
    ):
        with pytest.raises(KafkaError) as raised:
            verify(stage, who, 0, transactional_id=transactional_id)
        assert raised.value.code is code
    after = stage.end(producer)
    with pytest.raises(KafkaError) as raised:
        verify(stage, after, 0)
    assert raised.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
    stage.write_markers()
    assert verify(stage, after, 0) == [ErrorCode.TRANSACTION_ABORTABLE]
