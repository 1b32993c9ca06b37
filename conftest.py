"""Of all tests: in continuous integration none may be skipped, so that nothing goes untested unnoticed."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

pytest_plugins = ["jvm.spark_session"]

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.fixture(scope="session")
def kwire_broker_config() -> dict[str, object]:
    """Retention is not looked after: many records are of years ago, and would go amid a test of a long run.

    A group whose own settings say so may heartbeat often.
    """
    return {
        "log.retention.check.interval.ms": 24 * 60 * 60 * 1000,
        "group.consumer.min.heartbeat.interval.ms": 100,
    }


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _skipped_is_failed((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _skipped_is_failed((yield), collector.config)


def _skipped_is_failed(report: Report, config: pytest.Config) -> Report:
    # With --against, the broker is whatever it is: what needs another one is left out.
    counts = os.environ.get("CI") and config.getoption("against", None) is None
    if report.skipped and counts and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in continuous integration: {report.longrepr}"
    return report
