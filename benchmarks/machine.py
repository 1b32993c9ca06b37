"""On what it was measured, and with which versions of what is not kwire's."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from jvm import apache_kafka, maven
from kwire.cli.version import is_compiled


def described() -> dict[str, object]:
    """As JSON can keep it."""
    import confluent_kafka

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "kwire": "compiled" if is_compiled() else "plain Python",
        "java": _java(),
        "apache kafka": apache_kafka.VERSION,
        "librdkafka": confluent_kafka.libversion()[0],
        "pyspark": version("pyspark"),
    }


def in_memory(folder: Path) -> bool:
    """Whether what is written there goes to no disk."""
    asked = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(folder)]
    try:
        found = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    except FileNotFoundError:  # no util-linux
        return False
    return bool({"tmpfs", "ramfs"} & set(found[-1:]))


def _processor() -> str:
    """By its own name, where the kernel tells it."""
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


def _java() -> str:
    """The version that it tells of itself."""
    asked = [maven.java_program("java"), "-version"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    return told.splitlines()[1] if len(told.splitlines()) > 1 else told.strip()
