"""The processes of the pipeline's workers, and which programs they may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from jvm import apache_kafka, programs

CLIENTS = ("librdkafka", "java-classic", "java-consumer")
"""librdkafka's transactions are those of transaction version 1, Java's of 2; java-consumer is in a group of KIP-848."""


class WorkerProgram(NamedTuple):
    """What a worker runs."""

    client: str
    """One of CLIENTS."""
    command: list[str]
    """What starts it, up to and without BOOTSTRAP and the arguments after that."""


def program(client: str, folder: Path) -> WorkerProgram:
    """The worker with one of CLIENTS; what has to be compiled is kept in `folder`."""
    if client == "librdkafka":
        return WorkerProgram(client, [sys.executable, "-m", "compat_tests.exactly_once.worker"])
    source = Path(__file__).with_name("CopyWorker.java")
    java = programs.command([source], apache_kafka.class_path(), folder)
    return WorkerProgram(client, [*java, "CopyWorker", client.removeprefix("java-")])


class Workers:
    """Keeps `count` workers running; leaving it as a context manager kills them.

    Each has its own transactional id, `transactional_id` and its number, after the words of `command`.
    """

    def __init__(self, count: int, command: list[str], transactional_id: str, log: Path) -> None:
        self._command = command
        self._transactional_id = transactional_id
        self._log = log
        self._processes = [self._start(number) for number in range(count)]

    def tend(self) -> None:
        """Starts anew what has ended, under the same transactional id."""
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                self._processes[number] = self._start(number)

    def kill(self, number: int) -> None:
        """SIGKILL."""
        self._processes[number].kill()
        self._processes[number].wait()

    def log_tail(self) -> str:
        """The end of what they have complained about."""
        return self._log.read_text(errors="replace")[-3000:]

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        command = [*self._command, f"{self._transactional_id}-{number}"]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number in range(len(self._processes)):
            self.kill(number)
