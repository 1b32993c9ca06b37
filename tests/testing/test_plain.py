"""Kwire as plain Python, though it is compiled."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kwire

pytestmark = pytest.mark.skipif(
    not list(Path(kwire.__path__[0]).glob(f"compiled__mypyc*{EXTENSION_SUFFIXES[0]}")), reason="kwire is not compiled"
)

FILES = """
import kwire.storage.segment, kwire.protocol.records.survey
print(kwire.storage.segment.__file__, kwire.protocol.records.survey.__file__)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_what_is_compiled_is_what_is_imported() -> None:
    assert all(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in run(FILES).stdout.split())


def test_the_sources_where_they_are_asked_for() -> None:
    found = run(f"from kwire.testing import plain; plain.use(); plain.use()\n{FILES}").stdout.split()
    assert [name.rpartition("/")[2] for name in found] == ["segment.py", "survey.py"]


def test_what_was_imported_already_can_not_be_had_again() -> None:
    done = run(f"{FILES}\nfrom kwire.testing import plain; plain.use()")
    assert done.returncode == 1
    assert "RuntimeError: kwire was imported, compiled, before its sources were asked for" in done.stderr


def test_this_process_has_the_sources(pytestconfig: pytest.Config) -> None:
    import kwire.storage.segment

    assert kwire.storage.segment.__file__.endswith(".py") is not pytestconfig.getoption("compiled")
