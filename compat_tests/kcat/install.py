"""Where kcat comes from: the system's own, or Debian's package of that name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys


def kcat_program() -> str:
    """The path of kcat, which is installed first where apt-get can; raises RuntimeError with what to do otherwise."""
    found = shutil.which("kcat")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
        subprocess.run(["apt-get", "-qq", "update"], check=True, **quiet)
        subprocess.run(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", "kcat"], check=True, **quiet)
        found = shutil.which("kcat")
    if found is None:
        raise RuntimeError("the tests of kcat need kcat: install the package kcat (apt-get install kcat)")
    return found


if __name__ == "__main__":
    try:
        kcat_program()
    except RuntimeError as error:
        sys.exit(str(error))
