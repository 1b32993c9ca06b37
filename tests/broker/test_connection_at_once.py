"""A connection whose requests are handled without its task, as far as they need none, does what any other does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from struct import pack
from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.context import RequestRefused
from kwire.broker.parked import Parked
from kwire.ports.at_once import Signal, needs_task
from kwire.ports.tcp_stream import TcpStream
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_cluster import DescribeClusterResponse
from tests.broker.at_once import AT_ONCE, LONG, Client, Stands, Ticking, in_task
from tests.broker.test_connection import TOO_LONG, UNSPEAKABLE, Waits, answer, closed, request


async def test_requests_of_one_read_are_answered_in_order_without_the_task(client: Client) -> None:
    await client.ask(answer("a"), answer("b"), answer("c"))
    assert await client.answers(3) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]
    await client.ask(answer("d"))
    assert await client.answers(1) == [(1, "d", 0)]
    assert client.script.stepped == [True, True, True, True]


async def test_a_request_may_come_in_pieces(client: Client) -> None:
    await client.ask(answer("a"), answer("b"), requests=b"")
    both = request(1) + request(2)
    for start in range(0, len(both), 7):
        await client.stream.send([both[start : start + 7]])
        await trio.testing.wait_all_tasks_blocked()
    assert await client.answers(2) == [(1, "a", 0), (2, "b", 0)]
    assert client.script.stepped == [True, True]


async def test_the_task_finishes_what_needs_it_and_then_does_what_came_behind(client: Client) -> None:
    event = trio.Event()

    async def waits() -> DescribeClusterResponse:
        await needs_task()
        await event.wait()
        return answer("b")

    await client.ask(answer("a"), waits, answer("c"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(client.script.started) == 2
    event.set()
    assert await client.answers(3) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]
    await trio.testing.wait_all_tasks_blocked()
    await client.ask(answer("d"))
    assert await client.answers(1) == [(1, "d", 0)]
    assert client.script.stepped == [True, True, False, True]


async def test_a_request_that_stands_still_is_answered_when_its_signal_is_set(client: Client) -> None:
    """What was owed before it is sent at once, what came behind it, or comes later, waits."""
    parked = Stands("b")
    await client.ask(answer("a"), parked, answer("c"), answer("d"), requests=request(1) + request(2) + request(3))
    assert await client.answers(1) == [(1, "a", 0)]
    await client.stream.send([request(4)])
    await trio.testing.wait_all_tasks_blocked()
    assert len(client.script.started) == 2
    parked.signal.set()
    assert await client.answers(3) == [(2, "b", 0), (3, "c", 0), (4, "d", 0)]
    assert client.script.stepped == [True, True, True, True]


async def test_a_handler_may_stand_still_itself_and_more_than_once(client: Client) -> None:
    signals = [Signal(), Signal()]
    parked = Stands("a")

    async def waits() -> Parked:
        for signal in signals:
            await signal.wait()
        return parked

    await client.ask(waits, answer("b"))
    for signal in (*signals, parked.signal):
        await trio.testing.wait_all_tasks_blocked()
        assert len(client.script.started) == 1
        signal.set()
    assert await client.answers(2) == [(1, "a", 0), (2, "b", 0)]


async def test_what_waits_may_need_the_task_at_last(client: Client) -> None:
    event = trio.Event()

    class NeedsTask(Stands):
        async def response(self) -> DescribeClusterResponse:
            await self.signal.wait()
            await needs_task()
            await event.wait()
            return answer(self._name)

    parked = NeedsTask("a")
    await client.ask(parked, answer("b"))
    await trio.testing.wait_all_tasks_blocked()
    parked.signal.set()
    await trio.testing.wait_all_tasks_blocked()
    event.set()
    assert await client.answers(2) == [(1, "a", 0), (2, "b", 0)]


async def test_a_signal_is_waited_for_in_the_task_too(client: Client) -> None:
    """What the handler waits for by then, or what it has parked."""
    event, parked = trio.Event(), Stands("a")

    async def waits() -> Parked:
        await needs_task()
        await event.wait()
        return parked

    await client.ask(waits, answer("b"))
    await trio.testing.wait_all_tasks_blocked()
    event.set()
    await trio.testing.wait_all_tasks_blocked()
    parked.signal.set()
    assert await client.answers(2) == [(1, "a", 0), (2, "b", 0)]


async def test_at_once_and_in_the_task_by_turns(client: Client) -> None:
    requests = request(1) + in_task(2) + request(3) + request(4) + in_task(5) + in_task(6) + request(7)
    await client.ask(*(answer(str(number)) for number in range(1, 8)), requests=requests)
    assert await client.answers(7) == [(number, str(number), 0) for number in range(1, 8)]
    assert client.script.stepped[:2] == [True, False]
    await client.ask(answer("a"), answer("b"), requests=in_task(1))  # the last one was no sign of it
    assert await client.answers(1) == [(1, "a", 0)]
    await client.stream.send([request(2)])
    assert await client.answers(1) == [(2, "b", 0)]
    assert client.script.stepped[-2:] == [False, False]


async def test_what_is_owed_leaves_before_the_task_does_what_needs_it(client: Client) -> None:
    """As far as it goes without waiting for the client: in memory nothing does."""
    owed = 1 if isinstance(client.stream, TcpStream) else 0
    event = trio.Event()
    await client.ask(answer("a"), event, requests=request(1) + in_task(2))
    expected = [(1, "a", 0), (2, "done", 0)]
    assert await client.answers(owed) == expected[:owed]
    event.set()
    assert await client.answers(2 - owed) == expected[owed:]


async def test_a_wait_for_replicas_lets_what_comes_behind_start(client: Client) -> None:
    """Those requests are begun by the task; afterwards they are no more."""
    first, second = Waits("a", pipelined=True), Waits("b", pipelined=True)
    await client.ask(first, second, answer("c"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(client.script.started) == 3
    second.go.set()
    first.go.set()
    assert await client.answers(3) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]
    await trio.testing.wait_all_tasks_blocked()
    for name, stepped in (("d", False), ("e", True)):
        await client.ask(answer(name))
        assert await client.answers(1) == [(1, name, 0)]
        assert client.script.stepped[-1] is stepped


async def test_what_waits_by_trios_means_is_waited_for_in_the_task(client: Client) -> None:
    parked = Waits("a", pipelined=False)
    await client.ask(parked, answer("b"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(client.script.started) == 1
    parked.go.set()
    assert await client.answers(2) == [(1, "a", 0), (2, "b", 0)]


async def test_acks_0_gets_no_answer(client: Client) -> None:
    async def in_the_end() -> None:
        await needs_task()

    await client.ask(None, in_the_end, answer("c"), None, answer("e"))
    assert await client.answers(2) == [(3, "c", 0), (5, "e", 0)]


def at_once(failure: Exception) -> object:
    return failure


def in_the_task(failure: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        await needs_task()
        await trio.lowlevel.checkpoint()
        raise failure

    return fail


def after_a_wait(failure: Exception) -> Parked:
    parked = Stands("", failure)
    parked.signal.set()
    return parked


FAILURES = pytest.mark.parametrize("fails", [at_once, in_the_task, after_a_wait])


@FAILURES
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (OSError("no such disk"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_fails_is_answered_and_the_connection_goes_on(
    client: Client, fails: Callable[[Exception], Any], failure: Exception, code: ErrorCode
) -> None:
    await client.ask(answer("a"), fails(failure), answer("c"))
    assert await client.answers(3) == [(1, "a", 0), (2, "", code), (3, "c", 0)]


@FAILURES
async def test_a_refused_request_closes_the_connection_after_the_answers_before_it(
    client: Client, fails: Callable[[Exception], Any], caplog
) -> None:
    await client.ask(answer("a"), fails(RequestRefused("scripted")), answer("c"))
    assert await client.answers(1) == [(1, "a", 0)]
    assert await closed(client.stream)
    assert [(record.levelname, "scripted" in record.getMessage()) for record in caplog.records] == [("WARNING", True)]
    assert len(client.script.started) == 2


async def test_who_waits_but_does_not_say_that_he_needs_the_task_has_a_fault(client: Client, caplog) -> None:
    await client.ask(trio.Event(), answer("b"))
    assert await client.answers(2) == [(1, "", ErrorCode.UNKNOWN_SERVER_ERROR), (2, "b", 0)]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("waits", [False, True])
async def test_an_answer_that_does_not_fit_is_told_as_a_fault(client: Client, waits: bool) -> None:
    parked = Stands(TOO_LONG)
    parked.signal.set()
    await client.ask(parked if waits else answer(TOO_LONG), answer("b"))
    assert await client.answers(2) == [(1, "", ErrorCode.UNKNOWN_SERVER_ERROR), (2, "b", 0)]


async def test_an_answer_that_cannot_be_told_ends_its_connection_alone(clients: list[Client], caplog) -> None:
    client, other = clients
    client.script.failed = UNSPEAKABLE
    await client.ask(UNSPEAKABLE)
    assert await closed(client.stream)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    await other.ask(answer("b"))
    assert await other.answers(1) == [(1, "b", 0)]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(pack(">i", -5), id="negative size"),
        pytest.param(pack(">i", 1001), id="too large"),
        pytest.param(pack(">ihhih", 10, AT_ONCE, 7, 1, -1), id="unknown version"),
        pytest.param(pack(">ihh", 4, AT_ONCE, 0), id="cut header"),
        pytest.param(pack(">ihhih", 10, AT_ONCE, 0, 1, -1), id="cut body"),
    ],
)
async def test_a_bad_frame_closes_the_connection_after_the_answers_before_it(client: Client, bad: bytes) -> None:
    await client.ask(answer("a"), requests=request(1) + bad)
    assert await client.answers(1) == [(1, "a", 0)]
    assert await closed(client.stream)


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("in_the_task", [False, True])
async def test_what_waits_behind_a_large_answer_is_answered_after_it(
    client: Client, in_the_task: bool, taken: bool
) -> None:
    """Which leaves meanwhile, where it waits for nothing but a signal."""
    event, parked = trio.Event(), Stands("b")

    async def waits() -> DescribeClusterResponse:
        await needs_task()
        await event.wait()
        return answer("b")

    await client.ask(answer(LONG), waits if in_the_task else parked, answer("c"))
    await trio.testing.wait_all_tasks_blocked()
    taken = taken and not in_the_task  # a handler is not held up by what a client does not take
    if taken:
        assert await client.answers(1) == [(1, LONG, 0)]
    event.set()
    parked.signal.set()
    await trio.testing.wait_all_tasks_blocked()
    expected = [(1, LONG, 0), (2, "b", 0), (3, "c", 0)]
    assert await client.answers(3 - taken) == expected[taken:]


async def test_stopping_answers_what_stands_still_and_closes(client: Client) -> None:
    parked = Stands("a")
    await client.ask(parked)
    await trio.testing.wait_all_tasks_blocked()
    client.connection.stop()
    assert await client.answers(1) == [(1, "a", 0)]
    assert await closed(client.stream)


async def test_stopping_hurries_what_begins_to_wait_only_then(client: Client) -> None:
    signal, parked = Signal(), Stands("a")

    async def waits() -> Parked:
        await signal.wait()
        return parked

    await client.ask(waits)
    await trio.testing.wait_all_tasks_blocked()
    client.connection.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert not parked.hurried
    signal.set()
    assert await client.answers(1) == [(1, "a", 0)]
    assert await closed(client.stream)


async def test_stopping_hurries_what_stands_still_behind_a_large_answer(client: Client) -> None:
    """That is still on its way to a slow client."""
    await client.ask(answer(LONG), Stands("b"))
    await trio.testing.wait_all_tasks_blocked()
    client.connection.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert await client.answers(2) == [(1, LONG, 0), (2, "b", 0)]
    assert await closed(client.stream)


async def test_stopping_closes_an_idle_connection(client: Client) -> None:
    client.connection.stop()
    assert await closed(client.stream)


async def test_closing_ends_what_stands_still(client: Client) -> None:
    parked = Stands("a")
    await client.ask(parked)
    await trio.testing.wait_all_tasks_blocked()
    assert not parked.ended
    client.connection.close()
    with trio.fail_after(5):
        await client.over.wait()
    assert parked.ended
    assert await closed(client.stream)


async def test_closing_ends_a_handler_that_stands_still(client: Client) -> None:
    ended = []

    async def waits() -> None:
        try:
            await Signal().wait()
        finally:
            ended.append("ended")

    await client.ask(waits)
    await trio.testing.wait_all_tasks_blocked()
    client.connection.close()
    with trio.fail_after(5):
        await client.over.wait()
    assert ended == ["ended"]
    assert await closed(client.stream)


async def test_closing_ends_what_the_task_waits_for(client: Client) -> None:
    parked = Waits("a", pipelined=False)
    await client.ask(parked)
    await trio.testing.wait_all_tasks_blocked()
    client.connection.close()
    await trio.testing.wait_all_tasks_blocked()
    assert parked.hurried


async def test_the_answer_to_a_client_that_has_gone_ends_its_connection(client: Client, caplog) -> None:
    parked = Stands("a")
    await client.ask(parked, answer("b"), requests=request(1))
    await trio.testing.wait_all_tasks_blocked()
    client.stream.close()
    await trio.testing.wait_all_tasks_blocked()
    assert not parked.ended, "nobody has looked whether the client is there"
    parked.signal.set()
    with trio.fail_after(5):
        await client.over.wait()
    assert parked.ended
    assert caplog.records == []


async def test_a_parked_request_that_stands_still_is_no_activity(client: Client) -> None:
    """One that is worked on is."""
    clock = client.script.clock = Ticking(0.0)
    connection, parked, signal = client.connection, Stands("a"), Signal()

    async def works() -> DescribeClusterResponse:
        await signal.wait()
        return answer("b")

    clock.now = 1000.0
    await client.ask(parked, works)
    await trio.testing.wait_all_tasks_blocked()
    assert connection.last_active(5000.0) == 1000.0
    clock.now = 2000.0
    parked.signal.set()
    await client.answers(1)
    assert connection.last_active(5000.0) == 5000.0
    signal.set()
    await client.answers(1)
    await trio.testing.wait_all_tasks_blocked()
    assert connection.last_active(5000.0) == 2000.0
