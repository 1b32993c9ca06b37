"""`python -m benchmarks.guard.serve COUNTS OPTIONS...`: `kwire serve OPTIONS...`, which counts what it does.

It is plain Python, even where kwire is compiled, so that each call is seen. A first SIGUSR1 begins to count calls on
the event loop's thread, a second one ends that and begins to look at what it allocates, a third one ends that and
writes the file COUNTS (JSON).
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.guard.allocations import Allocations
from kwire.testing import plain

SYSTEM_CALLS = {
    *(f"socket.{name}" for name in ("accept", "recv", "recv_into", "recvmsg_into", "send", "sendmsg", "setsockopt")),
    *(f"epoll.{name}" for name in ("modify", "poll", "register", "unregister")),
    *(
        "fdatasync",
        "fstat",
        "fsync",
        "ftruncate",
        "ioctl",
        "lseek",
        "open",
        "posix_fadvise",
        "pread",
        "preadv",
        "pwrite",
        "pwritev",
        "read",
        "sendfile",
        "stat",
    ),
    *("write", "writev"),
}
"""Functions in C that are one system call each, by their qualified names."""


class Counts:
    """Of the thread that runs the event loop, which is the one that gets signals."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._calls: Counter[str] = Counter()
        self._steps = iter((self._count, self._watch, self._write))
        self._allocations = Allocations()

    def signalled(self, number: int, frame: FrameType | None) -> None:
        next(self._steps)()

    def _count(self) -> None:
        calls = self._calls

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call":
                calls["Python calls"] += 1
            elif event == "c_call":
                calls["C calls"] += 1
                name = argument.__qualname__
                if name in SYSTEM_CALLS:
                    calls["system calls"] += 1

        sys.setprofile(profile)

    def _watch(self) -> None:
        sys.setprofile(None)
        self._allocations.begin()

    def _write(self) -> None:
        self._allocations.end()
        allocations = {
            "large allocations": self._allocations.large,
            "bytes in large ones": self._allocations.large_bytes,
            "bytes in small ones": self._allocations.small_bytes,
            "bytes at most": self._allocations.most,
        }
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps({**self._calls, **allocations}))
        draft.rename(self._path)


if __name__ == "__main__":
    plain.use()

    from kwire.__main__ import main

    signal.signal(signal.SIGUSR1, Counts(Path(sys.argv.pop(1))).signalled)
    main()
