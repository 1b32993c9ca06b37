"""Pairs, their ratios, and the table made of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import kwire
from benchmarks import disturbance
from benchmarks import pairs as turns
from benchmarks.plots import draw, picture_of
from benchmarks.process import cpu_seconds, own_cpu_seconds, resident_mb
from benchmarks.report import Pairs, markdown, read, write
from benchmarks.steps import Step
from jvm.apache_kafka import VERSION
from kwire.testing.process import BrokerError

PAIRS = Pairs("step", [{"MB": 1.0}, {"MB": 30.0}, {"MB": 2.0}], [{"MB": 2.0}, {"MB": 10.0}, {"MB": 8.0}])


def test_ratios_are_taken_pair_by_pair() -> None:
    """0.5, 3 and 0.25: their median is not the ratio of the medians."""
    assert PAIRS.rows() == [("MB", 2.0, 8.0, 0.5, 0.25, 3.0)]


@pytest.mark.parametrize(("ours", "theirs"), [((1.0, 1.0, 3.0), (0.0, 2.0, 2.0)), ((0.0, 1.0, 3.0), (2.0, 2.0, 2.0))])
def test_where_a_side_took_no_time_there_is_no_ratio(ours: tuple[float, ...], theirs: tuple[float, ...]) -> None:
    """Whole ms of 0 are less than one: neither may such a pair count as one of no time, nor only the others."""
    pairs = Pairs("step", [{"ms": each} for each in ours], [{"ms": each} for each in theirs])
    assert markdown([pairs]).splitlines()[2:] == ["| step | ms | 1.00 | 2.00 | – |"]


def test_a_row_for_each_figure() -> None:
    assert markdown([PAIRS]).splitlines()[2:] == ["| step | MB | 2.00 | 8.00 | 0.50 (0.25 to 3.00) |"]


def test_a_disturbed_step_says_so() -> None:
    assert markdown([replace(PAIRS, disturbed=1)]).splitlines()[2].startswith("| step (disturbed) | MB |")


OPTIONS = {"full": True, "pairs": 5}


def test_every_pair_is_kept(tmp_path: Path) -> None:
    write([PAIRS], tmp_path / "results", OPTIONS)
    (step,) = json.loads((tmp_path / "results" / "results.json").read_text())["steps"]
    assert (step["kwire"], step["apache_kafka"]) == (PAIRS.kwire, PAIRS.other)
    assert (tmp_path / "results" / "results.md").read_text() == markdown([PAIRS]) + "\n"
    assert read(tmp_path / "results", OPTIONS) == [PAIRS]


def test_when_and_of_what_version_a_step_is_kept(tmp_path: Path) -> None:
    of_version = replace(PAIRS, version="v1-2-g123", measured="2026-11-28")
    write([PAIRS, of_version], tmp_path, OPTIONS)
    assert read(tmp_path, OPTIONS) == [PAIRS, of_version]


def test_what_was_measured_with_other_options_is_not_gone_on_with(tmp_path: Path) -> None:
    """A step has the same name in the quick form and in the full one, where it lasts 36 times as long."""
    write([PAIRS], tmp_path, OPTIONS)
    with pytest.raises(ValueError, match=r"was measured with .*'full': True"):
        read(tmp_path, {**OPTIONS, "full": False})


def test_what_was_measured_with_other_versions_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([PAIRS], tmp_path, OPTIONS)
    monkeypatch.setattr("benchmarks.machine._java", lambda: "another one")
    with pytest.raises(ValueError, match=r"was measured with .*not with .*another one"):
        read(tmp_path, OPTIONS)


def test_on_what_and_beside_what_it_was_measured_is_kept(tmp_path: Path) -> None:
    write([PAIRS], tmp_path, OPTIONS)
    known = json.loads((tmp_path / "results.json").read_text())["machine"]
    assert known["cores"] == os.cpu_count()
    assert known["apache kafka"] == VERSION
    assert all(known[what] for what in ("processor", "memory", "kernel", "python", "java", "librdkafka", "pyspark"))


def test_nothing_was_measured_yet(tmp_path: Path) -> None:
    assert read(tmp_path, OPTIONS) == []


def test_the_two_are_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "undisturbed", lambda measure: (measure(), False))
    measured: list[Any] = []

    def measure(make: Any) -> dict[str, float]:
        measured.append(make)
        return {"order": float(len(measured))}

    pairs = turns.run(Step("step", measure), 3)
    kwire, apache = turns.make_kwire, turns.make_apache_kafka
    assert measured == [kwire, apache, apache, kwire, kwire, apache]
    assert [pair["order"] for pair in pairs.kwire] == [1, 4, 5]
    assert pairs.measured == date.today().isoformat()
    assert pairs.disturbed == 0


def test_what_a_step_needs_to_know_of_the_other_side_it_learns_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "undisturbed", lambda measure: (measure(), False))
    done: list[Any] = []

    def measure(make: Any) -> dict[str, float]:
        done.append(make)
        return {"seconds": 1.0}

    turns.run(Step("step", measure, prepare=lambda make: done.append(("prepared", make))), 1)
    assert done == [("prepared", turns.make_apache_kafka), turns.make_kwire, turns.make_apache_kafka]


def test_what_it_learns_while_others_are_at_work_disturbs_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt: list[Any] = []

    def undisturbed(measure: Any) -> tuple[Any, bool]:
        return measure(), len(learnt) == 1 and not told

    told: list[Any] = []

    def measure(make: Any) -> dict[str, float]:
        told.append(make)
        return {"seconds": 1.0}

    monkeypatch.setattr(turns, "undisturbed", undisturbed)
    assert turns.run(Step("step", measure, prepare=learnt.append), 1).disturbed == 1


def test_a_version_is_told_where_there_is_no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert turns.version() == kwire.__version__


def test_another_version_takes_the_place_of_apache_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "undisturbed", lambda measure: (measure(), False))
    (tmp_path / "kwire/protocol/codec/_generated").mkdir(parents=True)
    (tmp_path / "kwire/__init__.py").touch()
    other, made = turns.version_of(tmp_path), list[Any]()

    def measure(make: Any) -> dict[str, float]:
        made.append(make)
        return {"seconds": 2.0}

    pairs = turns.run(Step("step", measure), 1, other)
    assert made == [turns.make_kwire, other]
    table = markdown([pairs], "kwire in old")
    assert "| seconds | 2.00 | 2.00 | 1.00" in table
    assert "| kwire | kwire in old |" in table


def test_a_folder_that_has_no_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no kwire"):
        turns.version_of(tmp_path)
    (tmp_path / "kwire").mkdir()
    (tmp_path / "kwire/__init__.py").touch()
    with pytest.raises(ValueError, match=r"has no codecs: run `python -m kwire\.protocol\.codec\.build"):
        turns.version_of(tmp_path)


def test_a_broker_of_another_version_is_that_version(tmp_path: Path) -> None:
    """Its source, and not that of the folder in which the benchmark runs."""
    (tmp_path / "kwire/protocol/codec/_generated").mkdir(parents=True)
    (tmp_path / "kwire/__init__.py").touch()
    (tmp_path / "kwire/__main__.py").write_text("print('the other version ran', flush=True)")
    with closing(turns.version_of(tmp_path)()) as broker, pytest.raises(BrokerError, match="the other version ran"):
        broker.start()


def test_what_a_process_used() -> None:
    before = cpu_seconds(os.getpid())
    while cpu_seconds(os.getpid()) == before:
        pass
    assert 1 < resident_mb(os.getpid()) < 100_000


def busy(seconds: float) -> str:
    """A program that uses so much CPU time, however long it has to wait for it."""
    return f"import time\nwhile time.process_time() < {seconds}: pass"


def test_what_others_do_spoils_a_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others: processes of a family that is not the benchmark's."""
    monkeypatch.setattr(disturbance, "own_cpu_seconds", lambda: 0.0)
    done: list[str] = []
    monkeypatch.setattr(disturbance, "make_ready", lambda: done.append("made ready"))

    def measure() -> dict[str, float]:
        done.append("measured")
        subprocess.run([sys.executable, "-c", busy(1.0)], check=True)
        return {}

    assert disturbance.undisturbed(measure) == ({}, True)
    assert done == ["made ready", "measured"] * disturbance.TRIES


def test_own_processes_count_as_own_while_they_run_and_after() -> None:
    before = own_cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", busy(0.4)]) as process:
        deadline = time.monotonic() + 30
        while own_cpu_seconds() - before < 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.wait()
    assert own_cpu_seconds() - before > 0.3


def test_where_a_figure_is_drawn() -> None:
    figures = {
        "produced records/s": "produced",
        "consumed records/s": "consumed",
        "consumed records/s, all together": "throughput",
        "CPU s per M produced": "cpu-produced",
        "CPU s per GB": "cpu",
        "MB at most": "memory",
        "KB a partition, new and empty": "memory",
        "MB/s read": "throughput",
        "ms to the acknowledgement, p99": "latency",
        "ms produced, p99": "latency-produced",
        "s to first ack": "time",
        "files open": "files",
    }
    for figure, name in figures.items():
        picture = picture_of(figure)
        assert picture is not None
        assert picture.name == name
    for figure in (
        "CPU s per GB produced",
        "ms produced, p50",
        "ms produced, p99.9",
        "records/s beside",
        "client's CPU µs per request",
        "MB of log before",
    ):
        assert picture_of(figure) is None


def test_pictures(tmp_path: Path) -> None:
    """One where fresh and steady share their row, one of another figure."""
    produced = {"produced records/s": 1.0}
    results = [
        Pairs("fresh: load", [produced], [produced]),
        Pairs("steady: load", [produced], [produced]),
        Pairs("step", [{"MB at most": 1.0}], [{"MB at most": 2.0}]),
    ]
    paths = draw([*results, Pairs("none", [{"MB at most": 0.0}], [{"MB at most": 2.0}])], tmp_path)
    assert [path.name for path in paths] == ["produced.png", "memory.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
