"""The crowd serves while Trio would wait, and Trio misses nothing meanwhile. Clients are threads of their own."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports import open_crowd as opening
from kwire.ports.at_once import step
from kwire.ports.attending import Next
from kwire.ports.transport import Part
from tests.ports.streams import Notes, Passes, Server, echoing, has_come, until

MOST = 100_000
"""So often a client asks: for some seconds, in which a test is over that does not have to wait for its end."""


class Asking:
    """A client that sends a byte and waits for it to come back, again and again until it is told to stop."""

    def __init__(self, client: socket.socket) -> None:
        client.settimeout(20)
        self._client = client
        self.answers = 0
        self.stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self.stopped and self.answers < MOST:
            self._client.sendall(b"x")
            assert self._client.recv(1) == b"x"
            self.answers += 1

    async def stop(self) -> None:
        self.stopped = True
        await trio.to_thread.run_sync(self._thread.join, 20)


@asynccontextmanager
async def asking(client: socket.socket) -> AsyncIterator[Asking]:
    asks = Asking(client)
    try:
        yield asks
    finally:
        with trio.CancelScope(shield=True):
            await asks.stop()


async def several(server: Server, nursery: trio.Nursery, number: int) -> list[Notes]:
    """As many as that, which are called whenever their clients ask."""
    all_notes = []
    for _ in range(number):
        stream, _ = await server.connect()
        all_notes.append(echoing(stream))
        nursery.start_soon(stream.attend, all_notes[-1])
    await trio.testing.wait_all_tasks_blocked()
    return all_notes


@pytest.fixture
async def busy(server: Server, nursery: trio.Nursery) -> tuple[Notes, socket.socket]:
    """One that is called whenever its client asks, and the client."""
    (notes,) = await several(server, nursery, 1)
    return notes, server.clients[0]


async def counted(notes: Notes, number: int) -> None:
    """Returns when it has answered so often more; Trio has nothing to do in between."""
    reached, answers, goal = trio.Event(), notes.answers, len(notes.heard) + number

    def answer(data: bytes) -> list[Part]:
        if len(notes.heard) == goal:
            reached.set()
        return [*answers(data)]

    notes.answers = answer
    with trio.fail_after(20):
        await reached.wait()
    notes.answers = answers


async def test_a_pass_of_trios_loop_is_not_needed(busy: tuple[Notes, socket.socket]) -> None:
    notes, client = busy
    passes = Passes()
    async with asking(client):
        await counted(notes, 100)
        trio.lowlevel.add_instrument(passes)
        await counted(notes, 1000)
        trio.lowlevel.remove_instrument(passes)
    assert passes.number < 20


async def test_a_task_that_is_woken_by_what_came_goes_on(busy: tuple[Notes, socket.socket]) -> None:
    """Whether more comes after it or not."""
    notes, client = busy
    with trio.fail_after(20):
        woken = trio.Event()
        notes.answers = lambda data: woken.set() or [data]
        threading.Timer(0.01, lambda: client.sendall(b"y")).start()
        await woken.wait()
        assert await has_come(client, 1) == b"y"
        notes.answers = lambda data: [data]
        async with asking(client):
            await counted(notes, 1000)


async def test_time_is_up_while_it_serves(busy: tuple[Notes, socket.socket]) -> None:
    _, client = busy
    async with asking(client) as asks:
        for _ in range(20):
            await trio.sleep(0.002)
        assert asks.answers < MOST


async def test_time_is_up_while_nothing_comes(
    busy: tuple[Notes, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trio does not wait for as long once more."""
    opened = opening._opened.get()
    assert opened is not None
    crowd = opened.crowd
    woken: list[float] = []

    def wake() -> None:
        woken.append(trio.current_time())
        loop.wake()

    loop = crowd._loop
    monkeypatch.setattr(crowd, "_loop", loop._replace(wake=wake))
    deadline = trio.current_time() + 0.5  # a machine that stands still until then leaves nothing to wait for
    await trio.sleep_until(deadline)
    assert woken
    assert woken[-1] >= deadline


@pytest.mark.parametrize("serving", [True, False])
async def test_a_thread_that_has_ended_is_heard(busy: tuple[Notes, socket.socket], serving: bool) -> None:
    _, client = busy
    ends = threading.Event()
    with trio.fail_after(20):
        if not serving:
            threading.Timer(0.01, ends.set).start()
            await trio.to_thread.run_sync(ends.wait)
            return
        async with asking(client) as asks:

            def wait_for_some() -> None:
                enough = asks.answers + 100
                while asks.answers < enough:
                    pass

            await trio.to_thread.run_sync(wait_for_some)


@pytest.mark.parametrize("serving", [True, False])
async def test_signals_are_heard(busy: tuple[Notes, socket.socket], serving: bool) -> None:
    notes, client = busy
    with trio.fail_after(20), trio.open_signal_receiver(signal.SIGUSR1) as signals:
        if serving:
            async with asking(client):
                await counted(notes, 100)
                os.kill(os.getpid(), signal.SIGUSR1)
                assert await anext(aiter(signals)) == signal.SIGUSR1
        else:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            assert await anext(aiter(signals)) == signal.SIGUSR1


@pytest.mark.parametrize("serving", [True, False])
async def test_trios_own_files_are_waited_for(busy: tuple[Notes, socket.socket], serving: bool) -> None:
    notes, client = busy
    mine, other = socket.socketpair()
    with mine, other, trio.fail_after(20):
        if serving:
            async with asking(client):
                await counted(notes, 100)
                other.send(b"x")
                await trio.lowlevel.wait_readable(mine)
        else:
            threading.Timer(0.01, lambda: other.send(b"x")).start()
            await trio.lowlevel.wait_readable(mine)


async def test_who_is_resumed_by_a_task_is_called_before_trio_waits(busy: tuple[Notes, socket.socket]) -> None:
    notes, _ = busy
    notes.answers = lambda data: [b"resumed"]
    passes = Passes(lambda: notes.resumes)
    trio.lowlevel.add_instrument(passes)
    notes.stream.resume()
    with trio.fail_after(20):
        await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(passes)
    assert passes.seen[0] == 1


async def test_what_there_was_no_time_for_is_done_though_nothing_else_comes(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By passes that take no time at all, while all tasks wait."""
    monkeypatch.setattr(crowds, "PASS_SECONDS", -1.0)
    all_notes = await several(server, nursery, 20)

    def ask() -> None:
        for client in server.clients:
            client.settimeout(20)
            client.sendall(b"x")
        for client in server.clients:
            assert client.recv(1) == b"x"
        for client in server.clients:
            client.sendall(b"y")

    with trio.fail_after(20):
        await trio.to_thread.run_sync(ask)
        await until(lambda: all(notes.content == b"xy" for notes in all_notes))
        for notes in all_notes:
            notes.stream.resume()
        await until(lambda: all(notes.resumes == 1 for notes in all_notes))


@pytest.mark.usefixtures("busy")
async def test_idle_is_awaited_for_a_while() -> None:
    with trio.fail_after(20):
        await trio.testing.wait_all_tasks_blocked(0.01)


async def test_trio_is_not_idle_as_long_as_something_is_left_to_the_next_pass(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "PASS_SECONDS", -1.0)
    all_notes = await several(server, nursery, 20)
    for client in server.clients:
        client.sendall(b"x")
    await trio.testing.wait_all_tasks_blocked()
    assert all(notes.heard for notes in all_notes)
    for notes in all_notes:
        notes.stream.resume()
    await trio.testing.wait_all_tasks_blocked()
    assert all(notes.resumes == 1 for notes in all_notes)


@pytest.mark.parametrize("by_a_task", [True, False])
async def test_who_is_resumed_does_not_wait_for_all_who_ask(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, by_a_task: bool
) -> None:
    """However little time a pass has for these: for those it has as much again."""
    resumed, order = [], []
    for _ in range(10):
        stream, client = await server.connect()
        notes = Notes(stream)
        notes.asks = Next.WAIT
        nursery.start_soon(stream.attend, notes)
        client.sendall(b"x")
        resumed.append(notes)
    await until(lambda: all(notes.heard for notes in resumed))
    for notes in resumed:
        notes.answers = lambda data: order.append("resumed") or ()
    now = 0.0

    def time_passes(data: bytes) -> list[Part]:
        nonlocal now
        now += 10 * crowds.PASS_SECONDS
        order.append("asked")
        if not by_a_task and len(order) == 1:
            for notes in resumed:
                notes.stream.resume()
        return [data]

    for _ in range(10):
        stream, _ = await server.connect()
        notes = Notes(stream)
        notes.answers = time_passes
        nursery.start_soon(stream.attend, notes)
    await trio.testing.wait_all_tasks_blocked()
    monkeypatch.setattr(crowds, "monotonic", lambda: now)
    for client in server.clients[10:]:
        client.sendall(b"x")
    if by_a_task:
        for notes in resumed:
            notes.stream.resume()
    await until(lambda: len(order) == 20)
    assert order[:11] == ["asked", *["resumed"] * 10]


async def test_who_is_resumed_later_goes_behind_those_for_whom_something_came(
    server: Server, nursery: trio.Nursery
) -> None:
    """And not before tasks had their turn, which happens in between, each time."""
    order: list[str] = []
    one, other = await several(server, nursery, 2)
    again = 3

    def goes_on(data: bytes) -> list[Part]:
        nonlocal again
        order.append("one")
        again -= 1
        if again:
            server.clients[1].sendall(b"y")
            one.stream.resume_later()
            task_can_run.set()
        return []

    def asked(data: bytes) -> list[Part]:
        order.append("other")
        return []

    async def task() -> None:
        nonlocal task_can_run
        while again:
            await task_can_run.wait()
            task_can_run = trio.Event()
            order.append("task")

    task_can_run = trio.Event()
    nursery.start_soon(task)
    await trio.testing.wait_all_tasks_blocked()
    one.answers, other.answers = goes_on, asked
    server.clients[0].sendall(b"x")
    await until(lambda: not again and len(other.heard) == 2)
    assert order == ["one", "task", "other", "one", "task", "other", "one"]


async def test_who_asks_often_has_one_place_among_those_for_whom_there_was_no_time(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "PASS_SECONDS", -1.0)
    all_notes = await several(server, nursery, 4)
    opened = opening._opened.get()
    assert opened is not None
    crowd = opened.crowd
    for _ in range(20):
        for client in server.clients:
            client.sendall(b"x")
        await trio.lowlevel.checkpoint()
        assert len(crowd._again) < 4
    await until(lambda: all(len(notes.content) == 20 for notes in all_notes))


async def in_a_nursery() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)


async def within_a_time() -> None:
    with trio.move_on_after(0.01):
        await trio.sleep(1)


@pytest.mark.parametrize(
    "waits",
    [
        trio.lowlevel.checkpoint,
        partial(trio.sleep, 0.01),
        lambda: trio.Event().wait(),
        lambda: trio.Lock().acquire(),
        partial(trio.to_thread.run_sync, list),
        in_a_nursery,
        within_a_time,
    ],
    ids=["checkpoint", "sleep", "event", "lock", "thread", "nursery", "time"],
)
async def test_what_waits_by_trios_means_fails_there(
    busy: tuple[Notes, socket.socket], waits: Callable[[], Coroutine[Any, Any, Any]]
) -> None:
    """Where `needs_task` is missing before it; and nothing of it is left."""
    notes, client = busy
    failures: list[RuntimeError] = []

    def answer(data: bytes) -> list[Part]:
        try:
            step(waits())
        except RuntimeError as failure:
            failures.append(failure)
        return [data]

    notes.answers = answer
    with trio.fail_after(20):
        async with asking(client):
            await counted(notes, 3)
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(0.02)
    assert len(failures) == len(notes.heard)
