"""What a process used, read from /proc: CPU seconds and resident memory."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2
"""In a clock's number, as clock_getcpuclockid makes it of a process id."""


def cpu_seconds(pid: int) -> float:
    """User and system time of all the process's threads, finished ones included.

    By its CPU-time clock, since /proc/PID/stat tells ticks of 10 ms, and to be read from takes a broker but a few.
    """
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def resident_mb(pid: int) -> float:
    """Resident set in MB (10^6 bytes), shared pages included."""
    return _status_mb(pid, "VmRSS:")


def peak_mb(pid: int) -> float:
    """The most that was ever resident, or since `forget_peak`, in MB (10^6 bytes)."""
    return _status_mb(pid, "VmHWM:")


def forget_peak(pid: int) -> None:
    """From now on `peak_mb` tells the most since now (proc(5): /proc/PID/clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


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


def own_cpu_seconds() -> float:
    """CPU seconds of this process and of all that it started, those that ended and were waited for included."""
    own = os.times()
    seconds = own.user + own.system + own.children_user + own.children_system
    for pid in family(os.getpid())[1:]:
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            seconds += sum(map(int, fields[11:15])) / _TICK
    return seconds


def machine_cpu_seconds() -> float:
    """CPU seconds that the machine was not idle since some moment, other virtual machines' among them.

    By its idle time, which the kernel measures: the other times of /proc/stat are counted at the timer's ticks, so that
    of a load that wakes in time with them they tell several times as much as it uses, or next to nothing.
    """
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    _user, _nice, _system, idle, iowait = fields[:5]
    return time.monotonic() * (os.cpu_count() or 1) - (idle + iowait) / _TICK


def forget_cached(folder: Path) -> None:
    """Has the system forget what it has of a folder's files in memory."""
    os.sync()
    for inner, _, files in os.walk(folder):  # a broker that lives on deletes what earlier steps left meanwhile
        for name in files:
            with suppress(FileNotFoundError):
                descriptor = os.open(f"{inner}/{name}", os.O_RDONLY)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)


def _status_mb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(pid)
