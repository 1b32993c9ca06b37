"""What the README shows works as it stands there, and its tables are those of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.readme.documents import ROOT, blocks
from kwire.broker.table import markdown
from kwire.testing.process import BrokerProcess

README = ROOT / "README.md"
KWIRE = Path(sys.executable).with_name("kwire")


@pytest.mark.parametrize("example", [block for block in blocks(README, "python") if "def test_" not in block])
def test_a_client_example_runs(example: str, kwire_broker: BrokerProcess) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example.replace("localhost:9092", kwire_broker.bootstrap)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "b'hello'" in done.stdout or "b'alpha'" in done.stdout


def test_the_command_line_example_runs(kwire_broker_factory: Callable[..., BrokerProcess]) -> None:
    fresh = kwire_broker_factory()
    (example,) = [block for block in blocks(README, "") if "kwire produce greetings" in block]
    script = re.sub(r"kwire (topics|produce|consume)", f"{KWIRE} \\1", example)
    script = re.sub(r"greetings\b", f"greetings --bootstrap {fresh.bootstrap}", script)
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"partition \d, offset 0: hello\n", done.stdout)


def test_the_pytest_example_runs(tmp_path: Path) -> None:
    (example,) = [block for block in blocks(README, "python") if "def test_" in block]
    (tmp_path / "test_example.py").write_text(example)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_table_of_apis_is_the_registrys() -> None:
    assert markdown() in README.read_text()
