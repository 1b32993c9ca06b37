"""What a process used, read from /proc: CPU seconds and resident memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all the process's threads, finished ones included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def resident_mb(pid: int) -> float:
    """Resident set in MB (10^6 bytes), shared pages included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(pid)


def open_files(pid: int) -> int:
    """Descriptors, sockets and pipes included."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def family(pid: int) -> list[int]:
    """The process and all that it started and that run."""
    members = [pid]
    for member in members:  # grows meanwhile
        for task in Path(f"/proc/{member}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):
                members += map(int, task.read_text().split())
    return members


def machine_cpu_seconds() -> float:
    """CPU seconds that all processes of the machine used since it started, idle and waiting time left out."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / _TICK
