"""How long a broker lets another client wait while it is busy with something: a process that asks it all the time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_GIVE_UP_S = 120.0


class Waits:
    """ms; known when the watching has ended."""

    p99 = float("nan")
    longest = float("nan")


@contextmanager
def watching(bootstrap: str) -> Iterator[Waits]:
    """Measures what happens within, as `benchmarks.waits` sees it."""
    waits = Waits()
    command = [sys.executable, "-m", "benchmarks.waits", *bootstrap.rsplit(":", 1)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()  # it has begun
        yield waits
        printed, _ = watcher.communicate("stop\n", timeout=_GIVE_UP_S)
    waits.p99, waits.longest = map(float, printed.split())
