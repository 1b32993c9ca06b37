"""One coordinator partition over a log in memory: writes, failures, commits, loading."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.outcome import CoordinatorRecord, Marker, Now, Outcome, Pending, Producer
from kwire.coordinator.runtime.shard import Shard
from kwire.ports.clock import TrioClock
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.verification import VerificationGuard
from tests.coordinator.runtime.numbers import Codec, MemoryLog, Numbers, put, read, shard_of


async def test_a_write_is_answered_and_read_once_it_is_committed(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    answers: list[str] = []

    async def write() -> None:
        answers.append(await shard.write(put("a", 1)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        assert (answers, shard.read(read("a")), shard.machine.numbers.get("a")) == ([], None, 1)
        log.commit()
    assert (answers, shard.read(read("a"))) == (["a=1"], 1)


async def test_what_is_not_committed_in_time_is_answered_so_and_stays_written(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 1))
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    log.commit()
    assert shard.read(read("a")) == 1


@pytest.mark.parametrize(
    ("from_log", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
    ],
)
async def test_a_failed_append_takes_the_state_back(from_log: ErrorCode, told: ErrorCode) -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    await shard.write(put("a", 1))
    log.failure = KafkaError(from_log)
    failures: list[tuple[ErrorCode, int | None]] = []
    failed = lambda error, now: failures.append((error.code, shard.machine.numbers.get("a")))  # noqa: E731
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 2, failed=failed))
    assert raised.value.code is told
    assert failures == [(told, 1)]  # called when the state is back
    log.failure = None
    assert await shard.write(put("b", 3)) == "b=3"
    assert dict(shard.machine.numbers.items()) == {"a": 1, "b": 3}


async def test_writes_that_come_while_an_append_is_under_way_share_the_next_batch() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(shard.write, put("a", number))
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert [batch.count for batch in log.batches] == [1, 4]
    assert shard.read(read("a")) == 4


async def test_nobody_waits_for_as_long_as_others_write() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    answered: list[int] = []

    async def write(number: int) -> None:
        await shard.write(put("a", number))
        answered.append(number)

    async def let_one_append_through() -> None:
        await trio.testing.wait_all_tasks_blocked()
        gate, log.gate = log.gate, trio.Event()
        assert gate is not None
        gate.set()
        await trio.testing.wait_all_tasks_blocked()

    seen: list[list[int]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, 0)
        for number in range(1, 5):
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(write, number)
            await let_one_append_through()
            seen.append(answered.copy())
        await let_one_append_through()
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert shard.read(read("a")) == 4


async def test_what_takes_too_long_to_be_appended_is_answered_so_and_appended_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(KafkaError) as raised:
            await shard.write(put("a", 2))
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        log.gate.set()
    assert shard.read(read("a")) == 2


async def test_a_transactions_writes_share_a_batch_if_they_share_the_guard() -> None:
    """One that was begun after a marker has a guard of its own, with which the others would not be taken."""
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    guard = VerificationGuard()
    async with trio.open_nursery() as nursery:
        for verification in (None, guard, guard, None):
            write = put("a", 1, producer=Producer(7, 0), verification=verification)
            nursery.start_soon(shard.write, write)
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert [batch.count for batch in log.batches] == [1, 2, 1]
    assert log.guards == [None, guard, None]


async def test_a_batch_is_never_larger_than_the_topic_allows() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(shard.write, put("a" * 50, number))
        await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert max(batch.size for batch in log.batches) <= log.max_batch_bytes
    assert sum(batch.count for batch in log.batches) == 100
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a" * 2000, 1))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "a" * 2000 not in shard.machine.numbers


async def test_what_waits_behind_a_failed_append_fails_too() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write(number: int) -> None:
        try:
            await shard.write(put("a", number))
        except KafkaError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(write, number)
        await trio.testing.wait_all_tasks_blocked()
        log.failure = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log.gate.set()
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert "a" not in shard.machine.numbers


async def test_who_has_only_seen_what_was_refused_is_to_try_again() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write(operation: Callable[[Numbers, Now], Outcome[str]]) -> None:
        with pytest.raises(KafkaError) as raised:
            await shard.write(operation)
        codes.append(raised.value.code)

    def look(machine: Numbers, now: Now) -> Outcome[str]:
        return Outcome("nothing to write")

    async with trio.open_nursery() as nursery:
        for operation in (put("a", 1, producer=Producer(7, 0)), look, put("a", 2)):
            nursery.start_soon(write, operation)
            await trio.testing.wait_all_tasks_blocked()
        log.failure = KafkaError(ErrorCode.INVALID_TXN_STATE)
        log.gate.set()
    told = {code: codes.count(code) for code in codes}
    assert told == {ErrorCode.INVALID_TXN_STATE: 1, ErrorCode.COORDINATOR_NOT_AVAILABLE: 2}


async def test_a_caller_that_goes_away_undoes_nothing() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(shard.write, put("a", 2))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        log.gate.set()
    assert shard.read(read("a")) == 2
    assert [batch.count for batch in log.batches] == [1, 1]


async def test_a_pending_response_comes_with_a_later_operation() -> None:
    shard = await shard_of(MemoryLog())
    pending: Pending[str] = Pending()
    answers: list[str] = []

    async def wait() -> None:
        answers.append(await shard.write(lambda machine, now: Outcome(pending)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        await shard.write(put("a", 1, committed=lambda now: pending.answer("joined")))
    assert answers == ["joined"]


async def test_closing_answers_everybody_and_takes_back_what_was_not_committed() -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write() -> None:
        try:
            await shard.write(put("a", 1))
        except KafkaError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        log.gate = trio.Event()
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        shard.close()
        log.gate.set()
    assert codes == [ErrorCode.NOT_COORDINATOR] * 2
    assert "a" not in shard.machine.numbers
    assert shard.machine.events == ["loaded", "unloaded"]
    with pytest.raises(KafkaError) as raised:
        shard.read(read("a"))
    assert raised.value.code is ErrorCode.NOT_COORDINATOR


async def test_loading_replays_records_tombstones_and_transactions() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    one, two = Producer(7, 0), Producer(8, 0)
    await shard.write(put("a", 1))
    await shard.write(put("gone", 1))
    await shard.write(put("gone", None))
    await shard.write(put("b", 2, producer=one))
    await shard.write(put("c", 3, producer=two))
    await shard.write(lambda machine, now: Outcome(None, marker=Marker(one, True, 5, 2)))
    await shard.write(lambda machine, now: Outcome(None, marker=Marker(two, False, 5, 0)))
    await shard.write(put("d", 4, producer=one))
    assert [(batch.control, batch.transactional, batch.producer_id) for batch in log.batches[3:]] == [
        (False, True, 7),
        (False, True, 8),
        (True, True, 7),
        (True, True, 8),
        (False, True, 7),
    ]
    assert log.versions[5:] == [2, 0, 0]
    again = await shard_of(MemoryLog(log.data))
    for machine in (shard.machine, again.machine):
        assert dict(machine.numbers.items()) == {"a": 1, "b": 2}
        assert dict(machine.open.items()) == {one: (("d", 4),)}


async def test_what_is_loaded_from_behind_the_high_watermark_is_committed_later() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    await shard.write(put("a", 1))
    await shard.write(put("a", 2))
    again = MemoryLog(log.data)
    again.committed = 1
    shard = await shard_of(again)
    assert (shard.machine.numbers.get("a"), shard.read(read("a"))) == (2, 1)
    again.commit()
    assert shard.read(read("a")) == 2


async def test_what_was_deleted_is_not_loaded() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(shard.write, put(name, 1))
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    again = MemoryLog(log.data)
    again.start = 2  # in the middle of the second batch
    assert dict((await shard_of(again)).machine.numbers.items()) == {"c": 1}


async def test_while_loading_nobody_is_served() -> None:
    shard = Shard(MemoryLog(), Numbers(), Codec(), TrioClock())
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 1))
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_an_operation_whose_records_the_machine_cannot_take_changes_nothing() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    with pytest.raises(ValueError, match="can't take"):
        await shard.write(
            lambda machine, now: Outcome(None, [CoordinatorRecord("a", 1), CoordinatorRecord("bad", 1)])  # type: ignore[arg-type]
        )
    assert "a" not in shard.machine.numbers
    assert log.batches == []
