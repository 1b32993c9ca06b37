"""How long a broker lets other clients wait while it is busy with something: processes that ask it all the time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECORD_SIZE = 100
"""Bytes of each record that is produced here."""
_GIVE_UP_S = 120.0


class Waits:
    """ms; known when the watching has ended."""

    p99 = float("nan")
    longest = float("nan")


class Spread(Waits):
    """Likewise."""

    p50 = p999 = float("nan")
    count = 0
    """Of what the figures are."""


@contextmanager
def watching(bootstrap: str) -> Iterator[Waits]:
    """Measures what happens within, as `benchmarks.waits` sees it."""
    waits = Waits()
    with _beside("benchmarks.waits", bootstrap) as printed:
        yield waits
    waits.p99, waits.longest = printed


@contextmanager
def producing(bootstrap: str, topic: str, rate: float, linger_ms: float = 0) -> Iterator[Spread]:
    """Measures how long acknowledgements take within, as `benchmarks.paced` sees it."""
    produced = Spread()
    with _beside("benchmarks.paced", bootstrap, topic, str(rate), str(linger_ms)) as printed:
        yield produced
    count, produced.p50, produced.p99, produced.p999, produced.longest = printed
    produced.count = int(count)


@contextmanager
def arriving(bootstrap: str, topic: str) -> Iterator[Spread]:
    """Measures how old the records are that arrive within, as `benchmarks.arrivals` sees it."""
    ages = Spread()
    with _beside("benchmarks.arrivals", bootstrap, topic) as printed:
        yield ages
    count, ages.p50, ages.p99, ages.p999, ages.longest = printed
    ages.count = int(count)


@contextmanager
def passing(bootstrap: str, topic: str, rate: float) -> Iterator[tuple[Spread, Spread]]:
    """Both of the same records: how old they are when they arrive, and how long their acknowledgements take.

    Raises RuntimeError where fewer arrived than were acknowledged.
    """
    with arriving(bootstrap, topic) as ages, producing(bootstrap, topic, rate) as acks:
        yield ages, acks
    if ages.count < acks.count:
        raise RuntimeError(f"{acks.count} records were acknowledged, {ages.count} arrived")


@contextmanager
def _beside(module: str, *arguments: str) -> Iterator[list[float]]:
    """Runs a module that prints a line when it begins, and figures when its input ends: they are in the list then.

    Raises RuntimeError where it fails; it has told why on stderr.
    """
    figures: list[float] = []
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"{module} did not begin")
            yield figures
            printed, _ = process.communicate("stop\n", timeout=_GIVE_UP_S)
            if process.returncode:
                raise RuntimeError(f"{module} failed with {process.returncode}")
            figures += map(float, printed.split())
        finally:
            process.kill()
