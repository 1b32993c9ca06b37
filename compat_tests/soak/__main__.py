"""`python -m compat_tests.soak --seconds 600 --rate 1000`: says how it went; exit code 1 where lag or memory grew."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from compat_tests.soak.run import soak


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.soak")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=1000, help="records a second")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        soaked = soak(Path(folder), given.seconds, given.rate)
    print(soaked)
    try:
        soaked.check()
    except AssertionError:
        print("it did not hold", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
