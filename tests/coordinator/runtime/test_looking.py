"""Operations that write nothing, and have seen what is not committed yet."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.outcome import Now, Outcome, Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.numbers import MemoryLog, Numbers, put, shard_of


def look(machine: Numbers, now: Now) -> Outcome[int | None]:
    return Outcome(machine.numbers.get("a"))


async def test_it_is_answered_when_what_it_saw_is_committed(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    answers: list[object] = []

    async def ask(operation: object) -> None:
        answers.append(await shard.write(operation))  # type: ignore[arg-type,var-annotated]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, look)
        nursery.start_soon(ask, look)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        log.commit()
    assert sorted(answers, key=str) == [1, 1, "a=1"]
    assert await shard.write(look) == 1


async def test_it_fails_with_what_it_saw(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    log.gate, log.failure = trio.Event(), KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def ask(operation: object) -> None:
        with pytest.raises(KafkaError) as raised:
            await shard.write(operation)  # type: ignore[arg-type,var-annotated]
        codes.append(raised.value.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, look)
        await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    log.failure = None
    assert await shard.write(look) is None


async def test_what_another_operation_answers_does_not_wait_for_the_log(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    pending: Pending[str] = Pending()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        pending.answer("there")
        assert await shard.write(lambda machine, now: Outcome(pending)) == "there"
        log.commit()
