"""What a store in memory does wrong on demand."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from kwire.ports.randomness import Randomness


class Kind(Enum):
    """What happens to a call."""

    UNAVAILABLE = "unavailable"
    """Refused at once, nothing done (as with 503 Slow Down)."""
    TIMEOUT = "timeout"
    """No answer, nothing done."""
    DENIED = "denied"
    """The credentials are not good (any more)."""
    TORN = "torn"
    """A put ends amid its parts: nothing of it is to be seen. Other calls are done in part, or not at all."""
    LOST_ANSWER = "lost answer"
    """The work is done, and the answer does not arrive."""
    SLOW = "slow"
    """Done, but after a while."""


class Fault(NamedTuple):
    """What happens to one call, after `seconds` of waiting."""

    kind: Kind
    seconds: float = 0.0


class Faults(Protocol):
    def draw(self, operation: str, key: str) -> Fault | None:
        """Asked once for each call: `put`, `get`, `size`, `delete` or `list`, with the (first) key or the prefix."""


class RandomFaults:
    """Faults with a probability for each kind, drawn from the randomness alone: the same seed, the same faults."""

    def __init__(self, randomness: Randomness, percent: Mapping[Kind, int], *, most_seconds: float = 10.0) -> None:
        """`percent` of all calls are hit by each kind. Slow calls and time-outs last up to `most_seconds`."""
        if sum(percent.values()) > 100:
            raise ValueError("more than all calls would fail")
        self._randomness = randomness
        self._percent = tuple(percent.items())
        self._most_ms = max(1, int(most_seconds * 1000))

    def draw(self, operation: str, key: str) -> Fault | None:
        point = self._randomness.below(100)
        milliseconds = self._randomness.below(self._most_ms)
        for kind, percent in self._percent:
            if point < percent:
                return Fault(kind, milliseconds / 1000 if kind in (Kind.SLOW, Kind.TIMEOUT) else 0.0)
            point -= percent
        return None
