"""kwire's own client and command line work against Apache Kafka as they do against kwire."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.oracle.both import Both

pytestmark = pytest.mark.xdist_group("oracle")

ROOT = Path(__file__).parents[2]
TIMEOUT = 240


@pytest.mark.parametrize("folder", ["kwire_cli", "kwire_client"])
def test_against_apache_kafka(both: Both, folder: str) -> None:
    """The folder's tests pass with Apache Kafka in kwire's place."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"compat_tests/{folder}", "--against", both.kafka.bootstrap],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
