"""All listeners of an event loop share one crowd, for as long as there are any; and where there can be none."""

from __future__ import annotations

import errno
import queue
import socket
from collections.abc import Callable

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports import open_crowd as opening
from kwire.ports import trio_loop as loops
from kwire.ports.crowd import Crowd
from kwire.ports.open_crowd import open_crowd
from kwire.ports.seats import Alone
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream
from kwire.ports.trio_loop import trio_loop
from tests.ports.streams import echoing, has_come


async def echo_on(
    listener_opened: Callable[[int], None], *, task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED
) -> None:
    async def serve(stream: Stream) -> None:
        await stream.attend(echoing(stream))

    listener = await TcpTransport().listen("127.0.0.1", 0)
    listener_opened(listener.port)
    with trio.CancelScope() as scope:
        task_status.started(scope)
        await listener.serve(serve)
    listener.close()


async def test_all_listeners_share_one_crowd_for_as_long_as_there_are_any(nursery: trio.Nursery) -> None:
    ports: list[int] = []
    scopes = [await nursery.start(echo_on, ports.append) for _ in range(3)]
    await trio.testing.wait_all_tasks_blocked()
    opened = opening._opened.get()
    for closed in range(3):
        for port in ports[closed:]:
            with socket.create_connection(("127.0.0.1", port)) as client, trio.fail_after(20):
                client.send(b"x")
                assert await has_come(client, 1) == b"x"
        assert opening._opened.get() is opened
        scopes[closed].cancel()
        await trio.testing.wait_all_tasks_blocked()
    assert opening._opened.get() is None
    assert opened is not None
    assert opened.crowd._failure is None, "Trio tells it no more"
    await test_all_are_served_again_later(nursery)


async def test_all_are_served_again_later(nursery: trio.Nursery) -> None:
    ports: list[int] = []
    scope = await nursery.start(echo_on, ports.append)
    with socket.create_connection(("127.0.0.1", ports[0])) as client, trio.fail_after(20):
        client.send(b"x")
        assert await has_come(client, 1) == b"x"
    scope.cancel()


def test_a_clock_may_jump_while_a_crowd_is_open() -> None:
    async def serve() -> None:
        async with open_crowd(), trio.open_nursery() as nursery:
            await nursery.start(echo_on, [].append)
            await trio.sleep(1000)
            nursery.cancel_scope.cancel()

    clock = trio.testing.MockClock(autojump_threshold=0.01)
    trio.run(serve, clock=clock)
    assert clock.current_time() >= 1000


@pytest.mark.plain
async def test_what_goes_wrong_in_the_crowd_ends_who_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trio by itself would go on without it, and all clients would wait for ever."""

    def fail(crowd: Crowd, *_: object) -> bool:
        raise RuntimeError("broken")

    async def breaks() -> None:
        async with trio.open_nursery() as nursery:
            ports: list[int] = []
            await nursery.start(echo_on, ports.append)
            with socket.create_connection(("127.0.0.1", ports[0])) as client:
                client.send(b"x")
                assert await has_come(client, 1) == b"x"
                monkeypatch.setattr(Crowd, "_pass", fail)
                client.send(b"x")
                await trio.sleep(20)

    with trio.fail_after(10), pytest.raises(ExceptionGroup) as failure:
        await breaks()
    assert failure.group_contains(RuntimeError, match="broken")


@pytest.mark.plain
async def test_who_was_answered_before_something_went_wrong_gets_the_answer() -> None:
    pushed: list[int] = []

    class Called:
        promising = True

        def __init__(self, number: int) -> None:
            self.called = self
            self._number = number

        def ready(self) -> None:
            if self._number == 2:
                raise RuntimeError("broken")
            crowd.push_soon(self)

        def push(self) -> None:
            pushed.append(self._number)

    async with open_crowd():
        opened = opening._opened.get()
        assert opened is not None
        crowd = opened.crowd
        with pytest.raises(RuntimeError, match="broken"):
            crowd._call([Called(number) for number in range(4)])
        assert pushed == [0, 1]
        crowd.push_soon(Called(3))
        assert pushed == [0, 1, 3]


def test_the_guest_of_another_loop_does_not_keep_it_waiting() -> None:
    """`before_io_wait` is called by the host's thread."""
    todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    found: list[object] = []

    async def look() -> None:
        found.append(trio_loop())

    trio.lowlevel.start_guest_run(
        look, run_sync_soon_threadsafe=todo.put, done_callback=lambda outcome: todo.put(lambda: "done")
    )
    while todo.get(timeout=20)() != "done":
        pass
    assert found == [None]


async def test_where_the_system_has_no_room_for_a_crowd_everybody_waits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(errno.EMFILE, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(crowds.select, "epoll", full)
        async with open_crowd() as seat:
            assert isinstance(seat(0), Alone)


async def test_this_version_of_trio_has_what_the_crowd_needs() -> None:
    loop = trio_loop()
    assert loop is not None
    assert not loop.runnable
    trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
    assert loop.runnable


@pytest.mark.parametrize("missing", ["_epoll", "force_wakeup"])
async def test_where_trio_has_it_not_everybody_waits_alone(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    class Other:
        pass

    runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner
    for name in {"_epoll", "force_wakeup"} - {missing}:
        setattr(Other, name, getattr(runner.io_manager, name))
    with monkeypatch.context() as patch:
        patch.setattr(runner, "io_manager", Other())
        assert loops.trio_loop() is None
        opened = open_crowd()
        seat = await opened.__aenter__()
    assert isinstance(seat(0), Alone)
    await opened.__aexit__(None, None, None)
