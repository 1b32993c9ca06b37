"""The command line in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def kwire(*arguments: object) -> str:
    """What the command prints. AssertionError where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "kwire", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
