"""Workers: those in this process, and those in processes of their own."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from kwire.ports.executor import InlineExecutor
from kwire.ports.worker_processes import ProcessWorkers
from kwire.ports.workers import LocalWorkers, WorkerDied, Workers
from kwire.protocol.errors import ErrorCode, KafkaError

from .worker_tasks import Sum

PATIENCE = 20.0

both = pytest.mark.parametrize("workers", [LocalWorkers(InlineExecutor()), ProcessWorkers()], ids=["local", "process"])


def _runs(pid: int) -> bool:
    """Whether there is such a process that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    """Returns when the process runs no more."""
    with trio.fail_after(PATIENCE):
        while _runs(pid):  # noqa: ASYNC110  (nobody tells)
            await trio.sleep(0.01)


@both
async def test_a_worker_keeps_what_it_has(workers: Workers) -> None:
    worker = await workers.start(Sum, 5)
    assert await worker.call(Sum.add, 1) == 6
    assert await worker.call(Sum.add, 2, times=3) == 12
    data = os.urandom(300_000)
    assert await worker.call(Sum.echo, data) == data
    assert worker.alive
    await worker.end()


@both
async def test_what_it_raises_is_raised(workers: Workers) -> None:
    with pytest.raises(ValueError, match="a start of -1"):
        await workers.start(Sum, -1)
    worker = await workers.start(Sum, 0)
    with pytest.raises(OSError, match="No space left") as full:
        await worker.call(Sum.fail, "disk")
    assert (full.value.errno, full.value.filename) == (28, "/a/file")
    with pytest.raises(KafkaError, match="a message") as kafka:
        await worker.call(Sum.fail, "kafka")
    assert (kafka.value.code, kafka.value.message) == (ErrorCode.CORRUPT_MESSAGE, "a message")
    with pytest.raises(Exception, match="onetwo"):
        await worker.call(Sum.fail, "strangely")
    assert await worker.call(Sum.add, 7) == 7
    await worker.end()


async def test_a_process_goes_behind_the_broker_and_hashes_by_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    worker = await ProcessWorkers().start(Sum, 0)
    pid, niceness, hashing = await worker.call(Sum.process)
    assert pid != os.getpid()
    assert niceness == min(19, os.nice(0) + 5)
    assert hashing == "random"
    await worker.end()
    assert not worker.alive
    await gone(pid)


async def test_a_process_that_is_killed_is_told_of() -> None:
    worker = await ProcessWorkers().start(Sum, 0)
    pid, _, _ = await worker.call(Sum.process)
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def call() -> None:
            with pytest.raises(WorkerDied, match="ended with exit code -9"):
                await worker.call(Sum.run_on)

        await trio.testing.wait_all_tasks_blocked(0.1)
        os.kill(pid, signal.SIGKILL)
    assert not worker.alive


async def test_a_process_that_was_killed_before_the_call_is_told_of() -> None:
    worker = await ProcessWorkers().start(Sum, 0)
    pid, _, _ = await worker.call(Sum.process)
    os.kill(pid, signal.SIGKILL)
    await gone(pid)
    with pytest.raises(WorkerDied):
        await worker.call(Sum.add, 1)
    assert not worker.alive


async def test_a_call_that_is_cancelled_ends_the_process() -> None:
    """It might go on writing into what another uses."""
    worker = await ProcessWorkers().start(Sum, 0)
    pid, _, _ = await worker.call(Sum.process)
    with trio.move_on_after(0.05):
        await worker.call(Sum.run_on)
    assert not worker.alive
    assert not _runs(pid)


async def test_a_process_finds_what_this_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the current folder, too, where this one looks there."""
    (tmp_path / "only_there.py").write_text("def answer() -> int:\n    return 42\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *map(os.path.abspath, sys.path)])
    answer = importlib.import_module("only_there").answer
    worker = await ProcessWorkers().start(Sum, 0)
    assert await worker.call(Sum.ask, answer) == 42
    await worker.end()


async def test_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/there/is/none")
    with pytest.raises(WorkerDied, match="no process for a worker"):
        await ProcessWorkers().start(Sum, 0)


async def test_a_process_ends_with_the_one_that_started_it() -> None:
    """Even if that is killed while the worker is busy."""
    program = f"""
import trio
import trio.testing
from kwire.ports.worker_processes import ProcessWorkers
from {Sum.__module__} import Sum

async def main():
    worker = await ProcessWorkers().start(Sum, 0)
    print((await worker.call(Sum.process))[0], flush=True)
    await worker.call(Sum.run_on)

trio.run(main)
"""
    starter = await trio.lowlevel.open_process([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    pid = int(await starter.stdout.receive_some(100))
    starter.kill()
    await starter.wait()
    await gone(pid)
