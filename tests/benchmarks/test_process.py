"""What the benchmarks read of a process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from benchmarks.process import cpu_seconds, forget_cached


def test_cpu_seconds_are_those_of_the_process() -> None:
    before = time.process_time()
    found = cpu_seconds(os.getpid())
    assert before <= found <= time.process_time()


def test_what_is_deleted_meanwhile_need_not_be_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deleted", "kept"):
        (tmp_path / name).write_bytes(b"x")
    forgotten: list[str] = []
    open_file = os.open

    def opened(path: Path, flags: int) -> int:
        if path.name == "deleted":
            path.unlink()
        forgotten.append(path.name)
        return open_file(path, flags)

    monkeypatch.setattr(os, "open", opened)
    forget_cached(tmp_path)
    assert sorted(forgotten) == ["deleted", "kept"]
