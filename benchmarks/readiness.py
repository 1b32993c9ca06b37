"""What a machine is left with by whatever came before is not to be measured with what comes next."""

from __future__ import annotations

import os
from pathlib import Path

_BACKED_MB = 2500
"""More than any produce load writes (0.8 GB), with the memory that the processes themselves come to have."""


def make_ready() -> None:
    """Brings all that was written onto the disk, and has free memory backed.

    What was written before may be gigabytes that the system has yet to bring to the disk, at the expense of whoever
    comes next. And a virtual machine may give its free memory back to its host, and the host takes its time to give a
    page back when it is written to: a load's records would be measured with that, now more, now less.

    It goes by the machine's memory, not by what a container may have of it.
    """
    os.sync()
    have_backed(min(_BACKED_MB, free_mb(Path("/proc/meminfo").read_text()) // 2))


def have_backed(mb: int) -> None:
    """Writes to so much free memory (10^6 bytes), and lets it go."""
    bytearray(b"\xff") * (mb * 1_000_000)  # each byte is written, where zeros would have been mapped


def free_mb(meminfo: str) -> int:
    """What nothing is kept in, in 10^6 bytes, as /proc/meminfo tells it. ValueError where it does not."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024 // 1_000_000
    raise ValueError("/proc/meminfo says nothing of MemFree")
