"""The bare servers, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def bare_server(module: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Its address and its process, which ends with the context."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline())}", process.pid
        finally:
            process.kill()
