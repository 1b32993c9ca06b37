"""Requests of a connection that take more than a turn give way to other clients, without its task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from kwire.ports.at_once import give_way
from kwire.protocol.messages.describe_cluster import DescribeClusterResponse
from tests.broker.at_once import LONG, Client, Ticking
from tests.broker.test_connection import answer, request


async def test_what_gives_way_needs_no_task_and_goes_on_when_others_were_answered(clients: list[Client]) -> None:
    """What came behind it waits; what is owed before it does not."""
    client, other = clients
    script, gone_by, heard = client.script, 0, trio.Event()

    async def works() -> DescribeClusterResponse:
        nonlocal gone_by
        while not heard.is_set():
            gone_by += 1
            await give_way()
        return answer("b")

    await client.ask(answer("a"), works, answer("c"))
    assert await client.answers(1) == [(1, "a", 0)]
    script.replies.insert(2, answer("other"))
    await other.stream.send([request(4)])
    assert await other.answers(1) == [(4, "other", 0)]
    assert gone_by > 1
    assert script.stepped == [True, True, True]
    heard.set()
    assert await client.answers(2) == [(2, "b", 0), (3, "c", 0)]
    assert script.stepped == [True, True, True, True]


async def test_what_has_given_way_is_done_though_its_client_is_gone(client: Client) -> None:
    begun, heard, done = trio.Event(), trio.Event(), trio.Event()

    async def works() -> DescribeClusterResponse:
        begun.set()
        while not heard.is_set():
            await give_way()
        done.set()
        return answer("a")

    await client.ask(works)
    await begun.wait()
    client.stream.close()
    client.connection.close()
    heard.set()
    with trio.fail_after(20):
        await done.wait()
        await client.over.wait()


async def test_many_requests_of_one_read_need_no_task(client: Client) -> None:
    """Though they take more than a turn."""
    client.script.clock = Ticking(1.0)
    await client.ask(*(answer(str(number)) for number in range(1, 10)))
    assert await client.answers(9) == [(number, str(number), 0) for number in range(1, 10)]
    assert client.script.stepped == [True] * 9


async def test_what_comes_while_many_give_way_needs_no_task(client: Client) -> None:
    """It is read as soon as they are answered, which is not sent yet."""
    client.script.clock = Ticking(1.0)
    begun, may_end = trio.Event(), trio.Event()

    async def works() -> DescribeClusterResponse:
        begun.set()
        while not may_end.is_set():
            await give_way()
        return answer("1")

    await client.ask(works, answer("2"), answer("3"))
    await begun.wait()
    await client.ask(*(answer(str(number)) for number in range(1, 10)))
    may_end.set()
    assert [name for _, name, _ in await client.answers(12)] == [*"123", *"123456789"]
    assert client.script.stepped == [True] * 12


async def test_many_requests_of_one_read_let_others_have_their_turn(clients: list[Client]) -> None:
    client, other = clients
    client.script.clock = Ticking(1.0)
    await client.ask(*(answer(str(number)) for number in range(100)), requests=request(1) * 99)
    await other.stream.send([request(2)])
    assert await other.answers(1) != [(2, "99", 0)]


def gives_way(name: str) -> Callable[[], Awaitable[DescribeClusterResponse]]:
    async def work() -> DescribeClusterResponse:
        await give_way()
        return answer(name)

    return work


@pytest.mark.parametrize("tick", [0.0, 1.0], ids=["in one turn", "in many turns"])
@pytest.mark.parametrize("reply", [answer, gives_way])
@pytest.mark.parametrize("count", [1, 3, 40])
async def test_a_slow_client_gets_large_answers_whole(
    client: Client, count: int, reply: Callable[[str], object], tick: float
) -> None:
    """More than goes at once; what comes behind them, too."""
    client.script.clock = Ticking(tick)
    await client.ask(*(reply(f"{number}{LONG}") for number in range(count)))
    await trio.testing.wait_all_tasks_blocked()
    assert len(client.script.started) <= 20, "nothing bounds what is owed"
    assert await client.answers(count) == [(1 + number, f"{number}{LONG}", 0) for number in range(count)]
    await client.ask(answer("b"))
    assert await client.answers(1) == [(1, "b", 0)]
