"""Of all tests: what they import of kwire is plain Python, unless TEST_COMPILED is set. In continuous
integration none may be skipped, so that nothing goes untested unnoticed.

Brokers in processes of their own are what a user has: compiled, where that could be done.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TypeVar

import pytest

import kwire
from kwire.testing import plain

pytest_plugins = ["jvm.spark_session"]

COMPILED = bool(os.environ.get("TEST_COMPILED"))
"""Whether kwire's compiled modules are imported where there are any."""
if not COMPILED:
    plain.use()  # now: the conftests of folders, which may come next, import more of kwire

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError where a compiled module is not that which its source would be now, or none is there to use."""
    config.addinivalue_line("markers", "plain: replaces, or looks at, what is not there of a compiled module")
    modules = list(Path(kwire.__path__[0]).rglob(f"*{EXTENSION_SUFFIXES[0]}"))
    if COMPILED and not modules:
        raise pytest.UsageError("nothing of kwire is compiled: COMPILE_KWIRE=1 make --always-make .venv/.run says why")
    for compiled in modules:
        source = compiled.with_name(f"{compiled.name.partition('.')[0]}.py")
        if source.exists() and source.stat().st_mtime > compiled.stat().st_mtime:
            raise pytest.UsageError(f"{source} was changed since it was compiled: make .venv/.run compiles it again")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if COMPILED:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("plain")])
        items[:] = [item for item in items if not item.get_closest_marker("plain")]


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
