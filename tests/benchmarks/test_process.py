"""What the benchmarks read of a process."""

from __future__ import annotations

import os
import time

from benchmarks.process import cpu_seconds


def test_cpu_seconds_are_those_of_the_process() -> None:
    before = time.process_time()
    found = cpu_seconds(os.getpid())
    assert before <= found <= time.process_time()
