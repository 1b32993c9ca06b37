"""Whether something else used the machine while something was measured."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.process import machine_cpu_seconds, own_cpu_seconds
from benchmarks.readiness import make_ready

Found = TypeVar("Found")

FOREIGN = 0.15
"""More of the machine than this, used by others than the processes that the benchmark started, spoils a measurement."""
TRIES = 3


def undisturbed(measure: Callable[[], Found]) -> tuple[Found, bool]:
    """Measures until nothing else is at work, three times at most; what was found last, and whether that is spoilt.

    Each time the machine is made ready before.
    """
    for left in reversed(range(TRIES)):
        make_ready()
        began, machine, own = time.monotonic(), machine_cpu_seconds(), own_cpu_seconds()
        found = measure()
        used = machine_cpu_seconds() - machine - (own_cpu_seconds() - own)
        share = used / (time.monotonic() - began) / (os.cpu_count() or 1)
        if share <= FOREIGN:
            return found, False
        print(f"others used {share:.0%} of the machine; {left} tries left", file=sys.stderr, flush=True)
    return found, True
