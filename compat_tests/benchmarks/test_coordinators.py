"""The measures of groups and transactions give their figures, with loads too small to say anything of speed."""

from __future__ import annotations

import pytest

from benchmarks.coordinators import (
    NO_DELAY,
    commits,
    exactly_once_copy,
    java_transactions,
    rebalance,
    stall,
    transactions,
)
from benchmarks.pairs import make_kwire
from benchmarks.steps import OnBroker, fresh

pytestmark = pytest.mark.xdist_group("java")

TRANSACTIONS = {"transactions/s", "CPU ms per transaction", "CPU s per M", "CPU s per GB"}


@pytest.mark.parametrize(
    ("measure", "figures"),
    [
        (rebalance(3), {"s until stable", "CPU ms per member"}),
        (stall(3, 2), {"s until stable", "CPU s", "ms p99 of another's request", "ms longest"}),
        (commits(0.1), {"commits/s", "CPU ms per commit"}),
        (transactions(2, 0.1), TRANSACTIONS),
        (java_transactions(2, 0.1, 10), TRANSACTIONS),
        (exactly_once_copy(20), {"ms p50", "ms p99", "CPU ms per copy"}),
    ],
    ids=["rebalance", "stall", "commits", "transactions", "java-transactions", "exactly-once-copy"],
)
def test_a_measure(measure: OnBroker, figures: set[str]) -> None:
    found = fresh(measure, NO_DELAY)(make_kwire)
    assert set(found) == figures | {"MB at most"}
    # The CPU time of a small load is less than a tick of the clock that counts it.
    assert all(value > 0 for name, value in found.items() if "CPU" not in name)
