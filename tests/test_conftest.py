"""What the project's own settings of pytest do to a test that is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
    import pytest

    def test_passes():
        pass

    def test_skipped():
        pytest.skip("not here")

    @pytest.mark.skip("not at all")
    def test_never():
        pass

    @pytest.mark.xfail
    def test_known():
        assert False
    """


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a module of tests, and one that can't be collected here."""
    monkeypatch.setenv("PYTHONPATH", str(CONFTEST.parent))  # the plugin that it names is there
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(TESTS)
    pytester.makepyfile(test_module="import pytest\npytest.skip('the whole module', allow_module_level=True)")
    return pytester


def test_skipped_tests_fail_in_continuous_integration(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    result = project.runpytest_subprocess("--continue-on-collection-errors")
    result.assert_outcomes(passed=1, failed=1, xfailed=1, errors=2)
    result.stdout.fnmatch_lines(["*skipped in continuous integration: *not here*"])


def test_elsewhere_they_are_skipped(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    project.runpytest_subprocess().assert_outcomes(passed=1, skipped=3, xfailed=1)


def test_what_needs_another_broker_than_that_which_is_given_is_skipped(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = """
def pytest_addoption(parser):
    parser.addoption('--against')
"""
    project.makeconftest(CONFTEST.read_text() + option)
    monkeypatch.setenv("CI", "true")
    project.runpytest_subprocess("--against=localhost:9092").assert_outcomes(passed=1, skipped=3, xfailed=1)
