"""A consumer in a process of its own, as a test sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from compat_tests.groups.consumer import Settings

PATIENCE = 60.0
"""Seconds for what a group does; it takes a second or two, on a busy machine more."""


class Member:
    """Started at once; what it has told so far."""

    def __init__(self, settings: Settings) -> None:
        self.assignments: list[set[int]] = [set()]
        """The partitions that it had at first, and after each change."""
        self.records: list[tuple[int, int, str]] = []
        """(partition, offset, value), in the order in which they came."""
        self._done: list[str] = []
        command = [sys.executable, "-m", "compat_tests.groups.consumer", settings.to_json()]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            with self._changed:
                if "assigned" in event:
                    self.assignments.append(set(event["assigned"]))
                elif "record" in event:
                    self.records.append(tuple(event["record"]))
                else:
                    self._done.append(event["done"])
                self._changed.notify_all()

    @property
    def assigned(self) -> set[int]:
        return self.assignments[-1]

    @property
    def values(self) -> list[str]:
        return [value for _, _, value in self.records]

    def tell(self, command: str) -> None:
        """Has it do something (a method of `GroupConsumer` and numbers), and waits until it has."""
        assert self._process.stdin is not None
        before = len(self._done)
        self._process.stdin.write(f"{command}\n".encode())
        self._process.stdin.flush()
        self.wait(lambda: len(self._done) > before)

    def wait(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not holds():
                left = deadline - time.monotonic()
                assert left > 0, (self.assigned, self.records[-3:])
                assert self._process.poll() is None, f"the consumer ended with {self._process.returncode}"
                self._changed.wait(min(left, 0.1))

    def close(self) -> None:
        """It leaves the group."""
        self.tell("close")
        assert self._process.wait(PATIENCE) == 0
        self._reader.join()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    @property
    def running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def members(*settings: Settings) -> Iterator[list[Member]]:
    """Those that are still running at the end are killed."""
    started = [Member(each) for each in settings]
    try:
        yield started
    finally:
        for member in started:
            member.kill()


def wait_all(group: Sequence[Member], holds: Callable[[], bool]) -> None:
    """Waits until something holds of all."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, [(member.assigned, member.records[-3:]) for member in group]
        assert all(member.running for member in group)
        time.sleep(0.02)


def wait_for_shares(group: Sequence[Member], partitions: int) -> None:
    """Waits until the members share all partitions evenly, each belonging to one."""
    share = partitions // len(group)

    def shared() -> bool:
        taken = [partition for member in group for partition in member.assigned]
        return sorted(taken) == list(range(partitions)) and all(len(member.assigned) == share for member in group)

    wait_all(group, shared)
