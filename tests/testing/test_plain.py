"""Kwire as plain Python, though it is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import kwire

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not list(Path(kwire.__path__[0]).glob(f"compiled__mypyc*{EXTENSION_SUFFIXES[0]}")), reason="kwire is not compiled"
)

FILES = """
import kwire.storage.segment, kwire.protocol.records.survey
print(kwire.storage.segment.__file__, kwire.protocol.records.survey.__file__)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)


def test_what_is_compiled_is_what_is_imported() -> None:
    assert all(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in run(FILES).stdout.split())


def test_the_sources_where_they_are_asked_for() -> None:
    found = run(f"from kwire.testing import plain; plain.use(); plain.use()\n{FILES}").stdout.split()
    assert [name.rpartition("/")[2] for name in found] == ["segment.py", "survey.py"]


def test_what_was_imported_already_can_not_be_had_again() -> None:
    done = run(f"{FILES}\nfrom kwire.testing import plain; plain.use()")
    assert done.returncode == 1
    assert "RuntimeError: kwire was imported, compiled, before its sources were asked for" in done.stderr


def test_this_process_has_the_sources() -> None:
    import kwire.storage.segment

    assert kwire.storage.segment.__file__.endswith(".py") is not bool(os.environ.get("TEST_COMPILED"))


def test_so_have_tests_of_a_folder_whose_settings_import_more_of_kwire() -> None:
    done = run("import pytest; raise SystemExit(pytest.main(['--collect-only', '-q', 'tests/broker/test_frames.py']))")
    assert done.returncode == 0, done.stdout + done.stderr
