"""Pairs, their ratios, and the table made of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as main
from benchmarks.process import cpu_seconds, resident_mb
from benchmarks.report import Pairs, markdown, write
from benchmarks.steps import Step

PAIRS = Pairs("step", [{"MB": 1.0}, {"MB": 30.0}, {"MB": 2.0}], [{"MB": 2.0}, {"MB": 10.0}, {"MB": 8.0}])


def test_ratios_are_taken_pair_by_pair() -> None:
    """0.5, 3 and 0.25: their median is not the ratio of the medians."""
    assert PAIRS.rows() == [("MB", 2.0, 8.0, 0.5, 0.25, 3.0)]


def test_a_row_for_each_figure() -> None:
    assert markdown([PAIRS]).splitlines()[2:] == ["| step | MB | 2.00 | 8.00 | 0.50 (0.25 to 3.00) |"]


def test_every_pair_is_kept(tmp_path: Path) -> None:
    write([PAIRS], tmp_path / "results")
    (step,) = json.loads((tmp_path / "results" / "results.json").read_text())["steps"]
    assert (step["kwire"], step["apache_kafka"]) == (PAIRS.kwire, PAIRS.apache)
    assert (tmp_path / "results" / "results.md").read_text() == markdown([PAIRS]) + "\n"


def test_the_two_are_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "_wait_for_quiet", lambda: True)
    measured: list[Any] = []

    def measure(make: Any) -> dict[str, float]:
        measured.append(make)
        return {"order": float(len(measured))}

    pairs = main.run(Step("step", measure), 3)
    kwire, apache = main.make_kwire, main.make_apache_kafka
    assert measured == [kwire, apache, apache, kwire, kwire, apache]
    assert [pair["order"] for pair in pairs.kwire] == [1, 4, 5]
    assert pairs.disturbed == 0


def test_what_a_process_used() -> None:
    before = cpu_seconds(os.getpid())
    while cpu_seconds(os.getpid()) == before:
        pass
    assert 1 < resident_mb(os.getpid()) < 100_000
