"""What is done before each measurement."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import readiness


def test_all_is_on_the_disk_before_memory_is_backed(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: done.append("brought onto the disk"))
    monkeypatch.setattr(readiness, "have_backed", lambda mb: done.append(f"{mb} MB"))
    monkeypatch.setattr(readiness, "free_mb", lambda _meminfo: 100_000)
    readiness.make_ready()
    monkeypatch.setattr(readiness, "free_mb", lambda _meminfo: 1_000)
    readiness.make_ready()
    assert done == ["brought onto the disk", "2500 MB", "brought onto the disk", "500 MB"]


def test_memory_is_written_to_and_let_go() -> None:
    program = (
        "from benchmarks.process import peak_mb, resident_mb\n"
        "from benchmarks.readiness import have_backed\n"
        "import os\n"
        "before = resident_mb(os.getpid())\n"
        "have_backed(200)\n"
        "print(peak_mb(os.getpid()) - before, resident_mb(os.getpid()) - before)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    most, left = map(float, run.stdout.split())
    assert most > 190
    assert left < 10


def test_free_memory_is_what_nothing_is_kept_in() -> None:
    assert readiness.free_mb("MemTotal: 8000000 kB\nMemFree:  2000000 kB\nMemAvailable: 4000000 kB\n") == 2048
    with pytest.raises(ValueError, match="MemFree"):
        readiness.free_mb("MemTotal: 8000000 kB\n")


def test_the_system_tells_it() -> None:
    assert readiness.free_mb(Path("/proc/meminfo").read_text()) > 0
