"""`kwire log verify` from outside."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.storage.inspection.house import build


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return trio.run(build, tmp_path / "data")


def damage(log_dir: Path) -> str:
    """Changes the last byte of the first segment; the byte of its batch is part of what is told."""
    path = log_dir / "t-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return str(path)


def test_a_sound_dir(kwire, log_dir: Path) -> None:
    result = kwire("log", "verify", "--deep", str(log_dir))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1 partitions, 3 segments, 30 batches, 30 records, 3.3 KiB in ")
    assert result.stdout.endswith(": 0 faults, 0 notes\n")


def test_a_damaged_dir(kwire, log_dir: Path) -> None:
    path = damage(log_dir)
    result = kwire("log", "verify", str(log_dir))
    assert (result.exit_code, result.stderr) == (1, "kwire: 1 fault found\n")
    fault, summary = result.stdout.splitlines()
    assert fault.startswith(f"{path}: byte ")
    assert fault.endswith(" has a wrong checksum")
    assert summary.endswith("1 faults, 0 notes")


def test_json(kwire, log_dir: Path) -> None:
    path = damage(log_dir)
    (log_dir / "t-0" / "other").touch()
    result = kwire("log", "verify", "--format", "json", str(log_dir))
    assert result.exit_code == 1
    note, fault, summary = map(json.loads, result.stdout.splitlines())
    assert (fault["file"], fault["byte"] > 0) == (path, True)
    assert note == {"note": "not a file of a log", "file": str(log_dir / "t-0" / "other"), "byte": None}
    assert (summary["summary"]["faults"], summary["summary"]["batches"]) == (1, 30)


def test_a_dir_that_was_not_left_cleanly(kwire, log_dir: Path) -> None:
    (log_dir / ".kafka_cleanshutdown").unlink()
    result = kwire("log", "verify", str(log_dir))
    assert result.exit_code == 0
    assert f"{log_dir}: note: not stopped cleanly" in result.stdout


def test_a_dir_without_partitions(kwire, tmp_path: Path) -> None:
    result = kwire("log", "verify", str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, f"kwire: {tmp_path}: no partitions there\n")


def test_no_such_dir(kwire, tmp_path: Path) -> None:
    result = kwire("log", "verify", f"{tmp_path}/none")
    assert (result.exit_code, result.stderr) == (1, f"kwire: {tmp_path}/none: No such file or directory\n")


def test_a_bar_on_a_terminal(log_dir: Path) -> None:
    """On standard error; what is found goes where it always does."""
    damage(log_dir)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kwire", "log", "verify", str(log_dir)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=False)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 1
    assert "verifying" in shown
    assert "100%" in shown
    assert shown.rstrip().endswith("kwire: 1 fault found")
    assert len(done.stdout.splitlines()) == 2
