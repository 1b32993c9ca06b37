"""A consumer that a process runs, however its client is called: `python -m compat_tests.groups.consumer SETTINGS`.

It does what it is told, one command a line on standard input, and prints what happens, one JSON object a line:
`{"assigned": [0, 1]}` when its partitions change, `{"record": [partition, offset, value]}`, `{"done": command}`.
"""

from __future__ import annotations

import json
import select
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

LONG_SESSION_MS = 300_000
"""Longer than any test waits: only who says so leaves."""
SHORT_SESSION_MS = 6000
"""The shortest that a broker allows: what a crash costs in these tests."""


@dataclass(frozen=True)
class Settings:
    """`client` is the module beside this one; `strategy` is "range" or "cooperative-sticky".

    With the protocol "consumer" the broker says how long sessions are: see `broker_settings`.
    """

    client: str
    bootstrap: str
    group: str
    topic: str
    protocol: str = "classic"
    session_ms: int = LONG_SESSION_MS
    instance_id: str | None = None
    strategy: str = "range"
    auto_commit: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def broker_settings(session_ms: int) -> dict[str, object]:
    """Of a broker whose groups of the consumer protocol have sessions that long, and hear soon of a new assignment."""
    return {
        "group.consumer.min.session.timeout.ms": min(session_ms, 45_000),
        "group.consumer.max.session.timeout.ms": max(session_ms, 60_000),
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 200,
    }


class GroupConsumer(ABC):
    """A consumer of one topic in a group, that begins with the earliest records."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @abstractmethod
    def poll(self) -> Iterable[tuple[int, int, bytes]]:
        """Partition, offset and value of what comes within a moment."""

    @abstractmethod
    def assigned(self) -> set[int]: ...

    @abstractmethod
    def commit(self) -> None:
        """Waits for the answer."""

    @abstractmethod
    def commit_later(self) -> None:
        """Does not wait for it."""

    @abstractmethod
    def pause(self, partition: int) -> None: ...

    @abstractmethod
    def resume(self, partition: int) -> None: ...

    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Leaves the group, unless it is a static member."""


def _tell(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def _run(consumer: GroupConsumer) -> None:
    assigned: set[int] = set()
    while True:
        for partition, offset, value in consumer.poll():
            _tell(record=[partition, offset, value.decode()])
        now = consumer.assigned()
        if now != assigned:
            assigned = now
            _tell(assigned=sorted(now))
        if select.select([sys.stdin], [], [], 0)[0]:
            line = sys.stdin.readline()
            command, *numbers = line.split() or ["close"]
            getattr(consumer, command)(*map(int, numbers))
            _tell(done=line.strip())
            if command == "close":
                return


if __name__ == "__main__":
    settings = Settings(**json.loads(sys.argv[1]))
    _run(import_module(f"compat_tests.groups.{settings.client}").Consumer(settings))
