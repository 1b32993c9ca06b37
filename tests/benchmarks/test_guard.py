"""What the guard says of costs, and that it counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.guard import __main__ as guard
from benchmarks.guard import cases
from benchmarks.guard.__main__ import TOLERANCE, VERSION, changed, changed_again, known
from benchmarks.guard.allocations import LARGE, Allocations
from benchmarks.guard.cases import CASES, measure


def test_dearer_is_told() -> None:
    before = {"produce": {"Python calls": 20.0, "bytes at most": 1000.0}}
    assert changed(before, {"produce": {"Python calls": 20.9, "bytes at most": 1190.0}}) == []
    assert changed(before, {"produce": {"Python calls": 21.1, "bytes at most": 1000.0}}) == [
        "produce: Python calls were 20.0, are 21.1"
    ]


def test_one_call_more_for_each_of_many_partitions_is_told() -> None:
    before = {"produce": {"Python calls": 245.0, "system calls": 13.0}}
    assert len(changed(before, {"produce": {"Python calls": 255.0, "system calls": 14.0}})) == 2


def test_as_much_cheaper_is_told_too() -> None:
    """Else what was won could be lost again, and nobody would know."""
    before = {"produce": {"Python calls": 20.0}}
    assert changed(before, {"produce": {"Python calls": 19.1}}) == []
    assert changed(before, {"produce": {"Python calls": 18.0}}) == [
        "produce: Python calls were 20.0, are but 18.0: --update writes it down"
    ]


def test_what_is_not_counted_any_more_is_told() -> None:
    before = {"produce": {"C calls": 1.0, "Python calls": 2.0}, "fetch": {"C calls": 3.0}}
    assert changed_again(before, {"produce": {"C calls": 1.0}}) == [
        "produce: Python calls are not counted any more: --update forgets them",
        "fetch: C calls are not counted any more: --update forgets them",
    ]


def test_what_nothing_is_known_of_is_told() -> None:
    known_costs = {"produce": {"C calls": 1.0}}
    found = {"produce": {"C calls": 1.0, "Python calls": 2.0}, "fetch": {"C calls": 3.0}}
    assert changed(known_costs, found) == [
        "produce: Python calls are 2.0, of which nothing was known: --update writes it down",
        "fetch: C calls are 3.0, of which nothing was known: --update writes it down",
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
    assert len(changed_again(before, found)) == told
    assert measured == [CASES[-1].name]


@pytest.mark.skipif(not known(), reason=f"nothing is known of what requests cost with Python {VERSION}")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_request_got_dearer(case: cases.Case) -> None:
    assert changed_again({case.name: known().get(case.name, {})}, {case.name: measure(case)}) == []


@pytest.mark.skipif(not known(), reason=f"nothing is known of what requests cost with Python {VERSION}")
def test_nothing_is_known_of_requests_that_are_not_counted() -> None:
    assert known().keys() <= {case.name for case in CASES}


def test_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "REQUESTS", 100)
    found = measure(CASES[0])
    assert found.keys() == TOLERANCE.keys()
    assert found["system calls"] >= 3  # a wake-up, the request, the answer
    assert found["Python calls"] > found["system calls"]
    assert found["large allocations"] >= 2  # for what the system tells of connections, for what it has of one
    assert found["bytes in large ones"] >= found["large allocations"] * LARGE
    assert found["bytes in small ones"] > 0
    assert found["bytes at most"] > LARGE


@pytest.mark.parametrize(
    ("work", "large"),
    [
        (lambda data: None, 0),
        (lambda data: data.tobytes()[0], 1),
        (lambda data: b"".join([data, data])[0], 1),
        (lambda data: (bytes(data)[0], data.tobytes()[0]), 2),
    ],
)
def test_a_copy_is_seen_even_if_it_is_gone_at_once(work: Callable[[memoryview], object], large: int) -> None:
    found = allocated(work)
    assert found.large == large
    assert large * LARGE <= found.large_bytes <= large * 5 * LARGE


def test_small_objects_are_seen() -> None:
    without, with_them = (
        min(allocated(work).small_bytes for _ in range(10))  # other threads, such as pytest-xdist's, may allocate, too
        for work in (lambda data: len(data), lambda data: len([bytes(500), bytes(600)]))
    )
    assert 1100 < with_them - without < 1500


def allocated(work: Callable[[memoryview], object]) -> Allocations:
    data, allocations = memoryview(bytes(2 * LARGE)), Allocations()
    allocations.begin()
    work(data)
    allocations.end()
    return allocations
