"""Producer ids: never twice, blocks fetched ahead, callers that need a block wait for the same one."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.coordinator.producer_ids import BLOCK_SIZE, PREFETCH_AT, ProducerIds
from kwire.protocol.errors import ErrorCode, KafkaError


class Reservations:
    """Blocks in a row, like the metadata's; can be held up and made to fail."""

    def __init__(self, first: int = 0) -> None:
        self.next = first
        self.calls = 0
        self.gate = trio.Event()
        self.gate.set()
        self.failing = False

    async def reserve(self, count: int) -> int:
        self.calls += 1
        await self.gate.wait()
        if self.failing:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "on purpose")
        first, self.next = self.next, self.next + count
        return first


async def test_ids_count_up_from_block_to_block(nursery: trio.Nursery) -> None:
    blocks = Reservations(first=3000)
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    given = [await ids.next() for _ in range(2 * BLOCK_SIZE + 5)]
    assert given == list(range(3000, 3000 + 2 * BLOCK_SIZE + 5))
    assert blocks.calls == 3


async def test_the_next_block_is_fetched_before_it_is_needed(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    for _ in range(BLOCK_SIZE - PREFETCH_AT - 1):
        await ids.next()
    await wait_all_tasks_blocked()
    assert blocks.calls == 1
    await ids.next()
    await wait_all_tasks_blocked()
    assert blocks.calls == 2
    blocks.gate = trio.Event()  # from here a fetch would wait
    with trio.fail_after(5):
        for _ in range(PREFETCH_AT + 1):
            await ids.next()


async def test_nothing_is_reserved_before_the_first_is_needed(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    ProducerIds(blocks.reserve, nursery.start_soon)
    await wait_all_tasks_blocked()
    assert blocks.calls == 0


async def test_many_callers_at_once_get_different_ids(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    blocks.gate = trio.Event()
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    given: list[int] = []

    async def take() -> None:
        given.append(await ids.next())

    async with trio.open_nursery() as takers:
        for _ in range(2500):
            takers.start_soon(take)
        await wait_all_tasks_blocked()
        assert blocks.calls == 1
        blocks.gate.set()
    assert len(set(given)) == 2500
    assert max(given) < blocks.next


async def test_a_failure_is_the_callers_and_passes(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    blocks.failing = True
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    with pytest.raises(KafkaError):
        await ids.next()
    blocks.failing = False
    assert await ids.next() == 0


async def test_a_failure_to_fetch_ahead_shows_only_when_the_block_is_used_up(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    await ids.next()
    blocks.failing = True
    for expected in range(1, BLOCK_SIZE):
        assert await ids.next() == expected
    await wait_all_tasks_blocked()
    with pytest.raises(KafkaError):
        await ids.next()
    blocks.failing = False
    assert await ids.next() == BLOCK_SIZE


async def test_a_caller_that_gives_up_takes_no_id_along(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    blocks.gate = trio.Event()
    ids = ProducerIds(blocks.reserve, nursery.start_soon)
    with trio.move_on_after(0):
        await ids.next()
    blocks.gate.set()
    assert await ids.next() == 0


async def test_after_a_crash_no_id_comes_again(nursery: trio.Nursery) -> None:
    blocks = Reservations()
    before = ProducerIds(blocks.reserve, nursery.start_soon)
    given = {await before.next() for _ in range(BLOCK_SIZE - 1)}
    await wait_all_tasks_blocked()
    after = ProducerIds(blocks.reserve, nursery.start_soon)
    assert not given & {await after.next() for _ in range(BLOCK_SIZE)}
