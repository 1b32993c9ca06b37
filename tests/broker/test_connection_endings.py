"""What a connection began without its task ends well, whatever becomes of its client."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.ports.at_once import needs_task
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_cluster import DescribeClusterResponse
from tests.broker.at_once import Client, Stands
from tests.broker.test_connection import answer, closed
from tests.broker.test_connection_at_once import LONG


async def test_what_was_begun_does_not_wait_for_a_client_that_takes_nothing(client: Client) -> None:
    """A handler may hold what others wait for."""
    done = trio.Event()

    async def waits() -> DescribeClusterResponse:
        await needs_task()
        done.set()
        return answer("b")

    await client.ask(answer(LONG), waits)
    with trio.fail_after(5):
        await done.wait()
    assert await client.answers(2) == [(1, LONG, 0), (2, "b", 0)]


async def test_what_was_begun_is_done_though_the_client_is_gone(client: Client) -> None:
    event, done, parked = trio.Event(), trio.Event(), Stands("b")

    async def waits() -> Stands:
        await needs_task()
        await event.wait()
        done.set()
        return parked

    await client.ask(waits)
    await trio.testing.wait_all_tasks_blocked()
    client.connection.close()
    event.set()
    with trio.fail_after(5):
        await done.wait()
        await client.over.wait()


@pytest.mark.parametrize("count", [1, 3])
async def test_stopping_waits_until_a_slow_client_has_its_answers(client: Client, count: int) -> None:
    await client.ask(*(answer(LONG) for _ in range(count)))
    await trio.testing.wait_all_tasks_blocked()
    client.connection.stop()
    assert await client.answers(count) == [(1 + number, LONG, 0) for number in range(count)]
    assert await closed(client.stream)


async def test_a_client_that_takes_a_large_answer_slowly_is_active(client: Client) -> None:
    await client.ask(answer(LONG))
    await trio.testing.wait_all_tasks_blocked()
    later = trio.current_time() + 1000
    client.connection.last_active(later)
    for _ in range(3):
        await client.stream.receive(4000)
    await trio.testing.wait_all_tasks_blocked()
    assert client.connection.last_active(later) == later


async def test_a_missing_needs_task_ends_nothing_but_its_request(client: Client, caplog) -> None:
    event = trio.Event()
    await client.ask(event, answer("b"))
    assert await client.answers(2) == [(1, "", ErrorCode.UNKNOWN_SERVER_ERROR), (2, "b", 0)]
    event.set()
    await client.ask(answer("c"))
    assert await client.answers(1) == [(1, "c", 0)]
