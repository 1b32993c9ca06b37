"""The command line as a user runs it: in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compat_tests.driver import TIMEOUT

Done = subprocess.CompletedProcess[bytes]
KWIRE = [sys.executable, "-m", "kwire"]


class Cli:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, input: bytes = b"", code: int = 0) -> Done:
        """Runs a command that ends with this exit code."""
        done = subprocess.run(self.command(*arguments), input=input, capture_output=True, timeout=TIMEOUT)
        assert done.returncode == code, done.stderr.decode()
        return done

    def lines(self, *arguments: str) -> list[str]:
        return self(*arguments).stdout.decode().splitlines()

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--format", "json").stdout)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command under way, with pipes to and from it."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(self.command(*arguments), **pipes) as process:  # type: ignore[call-overload]
            try:
                yield process
            finally:
                process.kill()

    def command(self, *arguments: str) -> list[str]:
        return [*KWIRE, *arguments, "--bootstrap", self.bootstrap]
