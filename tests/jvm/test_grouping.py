"""Tests that share a JVM say so to pytest-xdist, which must listen: otherwise each worker would start its own."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("java")
def test_a_group_of_tests_stays_on_one_worker(request: pytest.FixtureRequest) -> None:
    grouped = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith("@java") == grouped
