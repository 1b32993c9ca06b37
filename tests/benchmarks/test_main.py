"""What `python -m benchmarks` refuses before it measures anything."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.machine import in_memory
from benchmarks.report import Pairs, write


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> Pairs:
        raise AssertionError("it measured")

    monkeypatch.setattr(command, "class_path", lambda: None)
    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "in_memory", lambda folder: folder == Path("/dev/shm"))


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_name_that_no_step_has(capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(["--only", "start", "--only", "latencies"], capsys)
    assert "--only: no step's name contains 'latencies'; there are" in told
    assert "steady: latency beside half a load" in told


def test_going_on_with_what_was_measured_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = Pairs("start", [{"s": 1.0}], [{"s": 2.0}])
    write([measured], tmp_path, {"full": True, "pairs": 5, "warm_up": 20_000_000, "scale": 1.0})
    told = refusal(["--resume", "--output", str(tmp_path)], capsys)
    assert "--resume" in told
    assert "was measured with {'full': True" in told


def test_how_long_a_latency_is_watched_is_one_of_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that an hour is not gone on with what was watched for a minute."""
    asked: list[object] = []
    monkeypatch.setattr(command, "read", lambda folder, options: asked.append(options["latency_seconds"]) or [])
    for arguments, seconds in (([], 20), (["--full"], 720), (["--full", "--latency-seconds", "150"], 150)):
        with pytest.raises(AssertionError, match="it measured"):
            command.main(["--resume", "--output", str(tmp_path), *arguments])
        assert asked[-1] == seconds


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_latency_of_no_time(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not more than 0" in refusal([f"--latency-seconds={seconds}"], capsys)


def test_what_is_in_memory() -> None:
    assert in_memory(Path("/dev/shm"))
    assert not in_memory(Path("/proc/self"))


def test_data_that_go_to_no_disk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Cold data would be none, and a flush would cost nothing."""
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    assert "is in memory: set TMPDIR" in refusal([], capsys)


def test_another_version_leaves_nothing_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--against writes nothing" in refusal(["--against", ".", "--resume"], capsys)
