"""No path got dearer: what a request costs in calls, system calls and memory, by the guard's own counts."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks.guard.__main__ import KNOWN, worse
from benchmarks.guard.cases import CASES, Case, measure

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_costs_no_more_than_before(case: Case) -> None:
    known = json.loads(KNOWN.read_text())
    if VERSION not in known:
        pytest.skip(f"nothing is known for Python {VERSION}: `make bench-guard` with --update writes it down")
    assert worse({case.name: known[VERSION][case.name]}, {case.name: measure(case)}) == []


def test_dearer_is_told() -> None:
    before = {"produce": {"Python calls": 100.0, "bytes at most": 1000.0}}
    assert worse(before, {"produce": {"Python calls": 104.9, "bytes at most": 1099.0}}) == []
    assert worse(before, {"produce": {"Python calls": 105.1, "bytes at most": 10.0}}) == [
        "produce: Python calls were 100.0, are 105.1"
    ]
