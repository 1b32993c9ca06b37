"""The README tells each deliberate deviation in the words of the table here."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.oracle.deviations import DEVIATIONS, markdown

pytestmark = pytest.mark.xdist_group("oracle")

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_has_the_table() -> None:
    assert markdown() in README.read_text()


def test_every_deviation_is_met_by_a_test() -> None:
    """Those that tests of kwire alone show have no pattern; all others must be named where they are met."""
    files = Path(__file__).parents[1].glob("*oracle/test_*.py")
    tests = "".join(file.read_text() for file in files if file != Path(__file__))
    assert [name for name, deviation in DEVIATIONS.items() if deviation.where and f'"{name}"' not in tests] == []
