"""What a machine is left with by whatever came before is not to be measured with what comes next."""

from __future__ import annotations

import os
from pathlib import Path

_BACKED_MB = 2500
"""More than any load writes while its rate counts, with the memory that the processes themselves come to have."""


def make_ready() -> None:
    """Brings all that was written onto the disk, and has free memory backed.

    What was written before may be gigabytes that the system has yet to bring to the disk, at the expense of whoever
    comes next. And a virtual machine may give its free memory back to its host, which takes its time when a page of it
    is written to again: a load's records would be measured with that, now more, now less.
    """
    os.sync()
    have_backed(min(_BACKED_MB, _free_mb() // 2))


def have_backed(mb: int) -> None:
    """Writes to so much free memory (10^6 bytes), and lets it go."""
    bytearray(b"\xff") * (mb * 1_000_000)  # each byte is written, where zeros would have been mapped


def _free_mb() -> int:
    """What nothing is kept in, in 10^6 bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024 // 1_000_000
    raise ValueError("/proc/meminfo says nothing of MemFree")
