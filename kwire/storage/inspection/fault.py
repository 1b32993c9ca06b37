"""What an inspection finds, and what it went through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Fault(NamedTuple):
    """Something that is not as it should be."""

    path: str
    position: int | None
    """The byte of the file; None where it is about the whole."""
    text: str
    serious: bool = True
    """False for what is worth knowing and nobody's loss, such as files that the next start removes."""

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path}: byte {self.position}"
        return f"{place}: {'' if self.serious else 'note: '}{self.text}"


@dataclass(slots=True)
class Tally:
    """How much was looked at."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    """As the headers count them."""
    bytes: int = 0
    """Of batches."""
    faults: int = 0
    notes: int = 0


class Findings:
    """Collects what is found; `tell` gets each fault at once, `advance` the bytes of batches that are done."""

    def __init__(self, tell: Callable[[Fault], None], advance: Callable[[int], None] = lambda size: None) -> None:
        self.tally = Tally()
        self.advance = advance
        self._tell = tell

    def fault(self, path: str, position: int | None, text: str) -> None:
        self.tally.faults += 1
        self._tell(Fault(path, position, text))

    def note(self, path: str, position: int | None, text: str) -> None:
        self.tally.notes += 1
        self._tell(Fault(path, position, text, serious=False))
