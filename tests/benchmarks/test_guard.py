"""What the guard says of costs, and that it counts."""

from __future__ import annotations

import pytest

from benchmarks.guard import __main__ as guard
from benchmarks.guard import cases
from benchmarks.guard.__main__ import VERSION, known, worse, worse_again
from benchmarks.guard.cases import CASES, measure


def test_dearer_is_told() -> None:
    before = {"produce": {"Python calls": 100.0, "bytes at most": 1000.0}}
    assert worse(before, {"produce": {"Python calls": 104.9, "bytes at most": 1190.0}}) == []
    assert worse(before, {"produce": {"Python calls": 105.1, "bytes at most": 10.0}}) == [
        "produce: Python calls were 100.0, are 105.1"
    ]


@pytest.mark.parametrize(("again", "told"), [(1000.0, 0), (1300.0, 1)])
def test_what_is_dearer_once_is_not_told(monkeypatch: pytest.MonkeyPatch, again: float, told: int) -> None:
    measured: list[str] = []

    def measure(case: cases.Case) -> cases.Costs:
        measured.append(case.name)
        return {"bytes at most": again}

    monkeypatch.setattr(guard, "measure", measure)
    before = {case.name: {"bytes at most": 1000.0} for case in CASES}
    found = before | {CASES[-1].name: {"bytes at most": 1300.0}}
    assert len(worse_again(before, found)) == told
    assert measured == [CASES[-1].name]


@pytest.mark.skipif(not known(), reason=f"nothing is known of what requests cost with Python {VERSION}")
def test_no_request_got_dearer() -> None:
    """By a tenth more than `make bench-guard` minds: libraries change too."""
    assert worse_again(known(), {case.name: measure(case) for case in CASES}, slack=1.1) == []


def test_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "REQUESTS", 100)
    found = measure(CASES[0])
    assert found.keys() == {"Python calls", "C calls", "system calls", "bytes at most"}
    assert found["system calls"] >= 3  # a wake-up, the request, the answer
    assert found["Python calls"] > found["system calls"]
    assert found["bytes at most"] > 0
