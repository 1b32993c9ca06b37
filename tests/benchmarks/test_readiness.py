"""What is done before each measurement."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import readiness


def test_all_is_on_the_disk_before_memory_is_backed(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: done.append("brought onto the disk"))
    monkeypatch.setattr(readiness, "have_backed", lambda mb: done.append(f"{mb} MB"))
    monkeypatch.setattr(readiness, "_free_mb", lambda: 100_000)
    readiness.make_ready()
    monkeypatch.setattr(readiness, "_free_mb", lambda: 1_000)
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


def test_free_memory_is_less_than_there_is() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1_000_000
    assert 0 < readiness._free_mb() <= total
