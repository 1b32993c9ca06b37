"""The processes of the pipeline's workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType


class Workers:
    """Keeps `count` workers running; leaving it as a context manager kills them."""

    def __init__(self, count: int, arguments: list[str], log: Path) -> None:
        self._arguments = arguments
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
        command = [sys.executable, "-m", "compat_tests.exactly_once.worker", *self._arguments]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, f"{self._arguments[1]}-{number}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number in range(len(self._processes)):
            self.kill(number)
