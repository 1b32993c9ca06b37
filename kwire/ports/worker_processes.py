"""Workers in processes of their own: the side of the process that starts them. The other is `worker_main`.

A worker's standard input and output are the two ways of the conversation: messages in pickle, each after its length
(uint32, big endian). First comes the class with its arguments, then a method with its arguments again and again, and
each is answered by (True, result) or (False, exception). What it prints goes where this process's errors go.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import trio

from kwire.ports.workers import Worker, WorkerDied

W = TypeVar("W")

LENGTH = struct.Struct(">I")
_READ_BYTES = 64 * 1024


class ProcessWorkers:
    """Each worker is a new interpreter, of a lower priority than this one's. It ends when this process does."""

    async def start(self, make: Callable[..., W], *arguments: object) -> Worker[W]:
        # -P: what lies in the current folder must not be taken for a module of ours.
        command = [sys.executable, "-P", "-m", "kwire.ports.worker_main"]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),  # "" is the current folder
            # Who knows how keys are hashed could make up some that collide.
            "PYTHONHASHSEED": "random",
        }
        try:
            process = await trio.lowlevel.open_process(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                process_group=0,  # Ctrl-C in a terminal is for the broker, which ends its workers
            )
        except OSError as error:
            raise WorkerDied(f"no process for a worker: {error}") from error
        worker: _ProcessWorker[W] = _ProcessWorker(process)
        await worker.ask(make, arguments, {})
        return worker


class _ProcessWorker(Generic[W]):
    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self.alive = True

    async def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await self.ask(method, arguments, named)

    async def ask(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        import pickle  # not needed before there is a worker, and not quite small

        message = pickle.dumps((function, arguments, named), pickle.HIGHEST_PROTOCOL)
        try:
            worked, result = pickle.loads(await self._exchange(message))
        except BaseException as error:  # cancelled amid it: an answer of this call must not be taken for the next one's
            await self.end()
            if isinstance(error, (trio.BrokenResourceError, trio.ClosedResourceError, EOFError)):
                raise WorkerDied(f"a worker process ended with exit code {self._process.returncode}") from error
            raise
        if worked:
            return result
        raise result

    async def _exchange(self, message: bytes) -> bytes:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(LENGTH.pack(len(message)) + message)
        (size,) = LENGTH.unpack(await self._read(LENGTH.size))
        return await self._read(size)

    async def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = bytearray()
        while len(data) < size:
            part = await self._process.stdout.receive_some(min(size - len(data), _READ_BYTES))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    async def end(self) -> None:
        self.alive = False
        with trio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    await stream.aclose()
