"""The file that is read, the topic between, and the file that is written."""

from __future__ import annotations

from pathlib import Path

from compat_tests.connect.worker import SINK, SOURCE
from compat_tests.reading import everything


class Files:
    """Lines that differ; `source` and `sink` are the configs of the two connectors."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._from, self._to = folder / "source.txt", folder / "sink.txt"
        self._from.touch()
        self.source = {"connector.class": SOURCE, "tasks.max": 1, "file": self._from, "topic": topic}
        self.sink = {"connector.class": SINK, "tasks.max": 1, "file": self._to, "topics": topic}
        self.written: list[str] = []

    def write(self, count: int) -> None:
        """Appends lines to the source."""
        lines = [f"line {number}" for number in range(len(self.written), len(self.written) + count)]
        with self._from.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.written += lines

    def read(self) -> list[str]:
        """The lines in the topic, as far as they are committed."""
        return [message.value().decode() for message in everything(self._bootstrap, self._topic)]

    def arrived(self) -> list[str]:
        """The lines in the sink."""
        return self._to.read_text().splitlines() if self._to.exists() else []

    def complete(self) -> bool:
        return set(self.arrived()) == set(self.written)

    def size(self) -> int:
        """Of the source, in bytes: the offset that its connector commits in the end."""
        return self._from.stat().st_size
