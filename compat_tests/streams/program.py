"""The Java program: compiled once, started and ended as often as a test likes."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from jvm import kafka_streams, programs

SOURCE = Path(__file__).with_name("WordCounts.java")
TIMEOUT = 120.0
"""Seconds for anything that must happen; nothing takes more than a few, but for a killed member's 6 s in its group."""
POLL = 0.1
"""Seconds between two looks at what a condition depends on."""


class Program:
    """WordCounts with its applications on one topic of lines; each application is NAME=GUARANTEE."""

    def __init__(self, bootstrap: str, lines: str, applications: Iterable[str], folder: Path) -> None:
        self.state = folder / "state"
        """The folder of the local stores."""
        self._output = folder / "output"
        self._errors = folder / "errors"
        self._applications = list(applications)
        command = programs.command([SOURCE], kafka_streams.class_path(), folder)
        self._command = [*command, "WordCounts", bootstrap, lines, str(self.state), *self._applications]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the program and waits until its applications run."""
        with self._output.open("wb") as output, self._errors.open("ab") as errors:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=output, stderr=errors)
        for application in self._applications:
            name = application.partition("=")[0]
            self.until(lambda name=name: _holds(f"{name} RUNNING\n" in self.printed(), f"{name} does not run"))

    def until(self, check: Callable[[], None]) -> None:
        """Calls the check until it raises no AssertionError, for as long as the program is well."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return check()
            except AssertionError as error:
                _holds(self.running and " ERROR\n" not in self.printed(), f"the program failed:\n{self.log_tail()}")
                if time.monotonic() > deadline:
                    raise AssertionError(f"{error}\n{self.printed()}\n{self.log_tail()}") from None
            time.sleep(POLL)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def printed(self) -> str:
        """By the present run."""
        return self._output.read_text()

    def log_tail(self) -> str:
        """The end of what all runs have logged."""
        return self._errors.read_text(errors="replace")[-5000:]

    def restored(self, application: str) -> dict[str, int]:
        """How many records of their changelogs the present run has read for the stores of an application."""
        counts: dict[str, int] = {}
        for store, records in re.findall(rf"^{application} restored (\S+) (\d+)$", self.printed(), re.MULTILINE):
            counts[store] = counts.get(store, 0) + int(records)
        return counts

    def stop(self) -> None:
        """Lets the applications close, and waits until they have."""
        assert self._process is not None
        self._process.communicate(timeout=TIMEOUT)
        _holds(self._process.returncode == 0, f"the program failed:\n{self.log_tail()}")

    def kill(self) -> None:
        """Ends it with SIGKILL where it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def _holds(condition: bool, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)
