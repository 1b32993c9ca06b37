"""Worker threads: how many run at once."""

import threading

import trio

from kwire.ports.executor import InlineExecutor, ThreadExecutor


async def both(executor):
    """What two functions give, each of which waits for the other for a while."""
    barrier = threading.Barrier(2)

    def meet():
        try:
            barrier.wait(timeout)
        except threading.BrokenBarrierError:
            return False
        return True

    timeout = 0.05 if executor.alone else 60
    found = []

    async def run():
        found.append(await executor.run(meet))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        nursery.start_soon(run)
    return found


class Threads(ThreadExecutor):
    """Knows whether there is one thread only."""

    alone = True

    def resize(self, threads):
        self.alone = threads == 1
        super().resize(threads)


async def test_as_many_run_at_once_as_there_may_be_threads():
    executor = Threads(1)
    assert await both(executor) == [False, False]
    executor.resize(2)
    assert await both(executor) == [True, True]
    executor.resize(1)
    assert await both(executor) == [False, False]


async def test_without_threads_there_is_nothing_to_change():
    executor = InlineExecutor()
    executor.resize(3)
    assert await executor.run(len, "abc") == 3
