"""What the tests have workers do."""

from __future__ import annotations

import os
from collections.abc import Callable

from kwire.protocol.errors import ErrorCode, KafkaError


class Unpicklable(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


class Sum:
    """Numbers that are added up."""

    def __init__(self, start: int) -> None:
        if start < 0:
            raise ValueError(f"a start of {start}")
        self._sum = start

    def add(self, number: int, *, times: int = 1) -> int:
        self._sum += number * times
        return self._sum

    def echo(self, data: bytes) -> bytes:
        print("what a worker prints is no answer")
        return data

    def ask(self, function: Callable[[], int]) -> int:
        return function()

    def process(self) -> tuple[int, int, str]:
        """Its id, its niceness, and how it hashes keys."""
        return os.getpid(), os.nice(0), os.environ["PYTHONHASHSEED"]

    def fail(self, how: str) -> None:
        if how == "disk":
            raise OSError(28, "No space left on device", "/a/file")
        if how == "kafka":
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a message")
        raise Unpicklable("one", "two")

    def run_on(self) -> None:
        while True:
            self._sum += 1
