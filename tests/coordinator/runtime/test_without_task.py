"""A coordinator's operation that is begun without a task: it ends in one step if it can, and else needs a task."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kwire.ports.at_once import NEEDS_TASK, go_on, needs_task, step
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.verification import VerificationGuard
from tests.coordinator.runtime.numbers import MemoryLog, put, read, shard_of


class WithTask(MemoryLog):
    """Appends in a task alone, as one that flushes."""

    async def append(
        self, batch: bytes, *, transaction_version: int = 0, verification: VerificationGuard | None = None
    ) -> int:
        await needs_task()
        return await super().append(batch, transaction_version=transaction_version, verification=verification)


async def test_what_is_committed_at_once_is_answered_in_the_same_step() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    with pytest.raises(StopIteration) as ended:
        step(shard.write(put("a", 1)))
    assert ended.value.value == "a=1"
    assert shard.read(read("a")) == 1


async def test_what_is_committed_later_is_answered_in_a_task() -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    write = shard.write(put("a", 1))
    assert step(write) is NEEDS_TASK
    assert log.end == 1
    answers: list[str] = []

    async def task() -> None:
        answers.append(await go_on(write))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        log.commit()
    assert answers == ["a=1"]


async def test_while_somebody_appends_nothing_is_changed_before_there_is_a_task() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        write, gone = shard.write(put("a", 2)), shard.write(put("a", 3))
        assert step(write) is step(gone) is NEEDS_TASK
        assert shard.machine.numbers.get("a") == 1
        gone.close()
        nursery.start_soon(go_on, write)
        await trio.testing.wait_all_tasks_blocked()
        assert shard.machine.numbers.get("a") == 2
        log.gate.set()
    assert [batch.count for batch in log.batches] == [1, 1]
    assert shard.read(read("a")) == 2


async def test_the_task_may_be_cancelled_amid_an_append_which_undoes_nothing() -> None:
    log = WithTask()
    log.gate = trio.Event()
    shard = await shard_of(log)
    write = shard.write(put("a", 1))
    assert step(write) is NEEDS_TASK
    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on, write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        await trio.lowlevel.cancel_shielded_checkpoint()
        log.gate.set()
    assert shard.read(read("a")) == 1


async def test_what_nobody_goes_on_with_is_taken_back_and_others_can_write() -> None:
    log = WithTask()
    shard = await shard_of(log)
    write: Any = shard.write(put("a", 1))
    assert step(write) is NEEDS_TASK
    assert shard.machine.numbers.get("a") == 1
    write.close()
    assert "a" not in shard.machine.numbers
    assert await shard.write(put("b", 2)) == "b=2"
    assert [batch.count for batch in log.batches] == [1]


async def test_what_fails_fails_in_the_step() -> None:
    log = MemoryLog()
    log.failure = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    shard = await shard_of(log)
    with pytest.raises(KafkaError) as raised:
        step(shard.write(put("a", 1)))
    assert raised.value.code is ErrorCode.NOT_COORDINATOR
    assert "a" not in shard.machine.numbers
