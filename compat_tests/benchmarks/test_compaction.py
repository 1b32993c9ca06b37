"""The measure of the log cleaner gives its figures, with a load too small to say anything of speed."""

from __future__ import annotations

import pytest

from benchmarks.compaction import compaction
from benchmarks.pairs import make_kwire

pytestmark = pytest.mark.xdist_group("java")


def test_a_compaction() -> None:
    figures = compaction(10, 5_000)(make_kwire)
    assert set(figures) == {
        "s until clean",
        "CPU s",
        "CPU s per M",
        "CPU s per GB",
        "MB at most",
        "ms p50 of a produce meanwhile",
        "ms p99 of a produce meanwhile",
        "ms longest wait of another's request",
        "MB of log before",
        "MB of log after",
    }
    assert all(value > 0 for name, value in figures.items() if "CPU" not in name)
    assert figures["MB of log after"] < figures["MB of log before"] / 2
