"""What the benchmarks read of a process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from benchmarks.process import cpu_seconds, forget_cached, forget_peak, peak_mb, resident_mb


def test_cpu_seconds_are_those_of_the_process() -> None:
    before = time.process_time()
    found = cpu_seconds(os.getpid())
    assert before <= found <= time.process_time()


def test_what_is_deleted_meanwhile_need_not_be_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("deleted", "kept"):
        (tmp_path / name).write_bytes(b"x")
    forgotten: list[str] = []
    open_file = os.open

    def opened(path: str, flags: int) -> int:
        name = Path(path).name
        if name == "deleted":
            os.unlink(path)
        forgotten.append(name)
        return open_file(path, flags)

    monkeypatch.setattr(os, "open", opened)
    forget_cached(tmp_path)
    assert sorted(forgotten) == ["deleted", "kept"]


def test_a_folder_that_is_deleted_meanwhile_need_not_be_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    (tmp_path / "kept").write_bytes(b"x")
    forgotten: list[str] = []
    look, open_file = os.scandir, os.open

    def looked(path: str) -> object:
        if Path(path) == deleted:
            deleted.rmdir()
        return look(path)

    def opened(path: str, flags: int) -> int:
        forgotten.append(Path(path).name)
        return open_file(path, flags)

    monkeypatch.setattr(os, "scandir", looked)
    monkeypatch.setattr(os, "open", opened)
    forget_cached(tmp_path)
    assert forgotten == ["kept"]
    assert not deleted.exists()


def test_a_peak_that_was_forgotten_is_that_of_now() -> None:
    pid = os.getpid()
    before = resident_mb(pid)
    room = bytearray(os.urandom(1)) * 200_000_000
    del room
    assert peak_mb(pid) > before + 150
    forget_peak(pid)
    assert peak_mb(pid) < before + 100
