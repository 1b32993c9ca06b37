"""What is done to two brokers, of which one knows no templates, for who compares what they answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from kwire.broker.templates import Templates
from tests.broker.foreseen import use_templates_at_once
from tests.broker.raw_produce import Producer
from tests.broker.scene import Scene

Harm = tuple[Any, ...] | None
"""What happens to a frame on its way."""


@dataclass
class Step:
    """What is done to both brokers."""

    do: Callable[[Scene, Producer], Any]
    text: str

    def __repr__(self) -> str:
        return self.text


def harms() -> st.SearchStrategy[Any]:
    """None, mostly."""
    return (
        st.none()
        | st.tuples(st.just("byte"), st.integers(0, 250), st.sampled_from([0, 1, 127, 128, 255]))
        | st.tuples(st.just("cut"), st.integers(1, 80))
        | st.tuples(st.just("more"), st.integers(1, 3))
    )


def harmed(frame: bytes, harm: Harm) -> bytes:
    """The frame with one byte behind its correlation id set, cut off, or longer than it says."""
    match harm:
        case ("byte", position, value):
            data = bytearray(frame)
            data[8 + position % (len(frame) - 8)] = value
            return bytes(data)
        case ("cut", size):
            return frame[:-size]
        case ("more", size):
            return frame + bytes(size)
    return frame


def played_twice(
    played: Callable[[list[Step]], Awaitable[Any]], steps: list[Step], *, foreseen: bool = False
) -> tuple[Any, Any]:
    """What comes of the steps with templates, and without. `foreseen`: each request finds its template there."""

    def play() -> Any:
        return trio.run(played, steps, clock=trio.testing.MockClock(autojump_threshold=0))

    with pytest.MonkeyPatch.context() as patched:
        if foreseen:
            use_templates_at_once(patched)
        as_before = play()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Templates, "learn", lambda self, shapes, call, frame: ())
        understood = play()
    return as_before, understood
