"""Brokers that live on from step to step."""

from __future__ import annotations

import os

import pytest

from benchmarks import steps


class FakeBroker:
    """Writes down what is done to it."""

    bootstrap = "127.0.0.1:9"
    pid = os.getpid()

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def start(self) -> None:
        self._done.append("started")

    def close(self) -> None:
        self._done.append("closed")


def test_is_warmed_once_and_the_machine_made_ready_before_the_first_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(steps, "make_ready", lambda: done.append("made ready"))
    monkeypatch.setattr(steps, "new_topic", lambda _bootstrap, partitions: f"topic of {partitions}")
    monkeypatch.setattr(steps, "consume", lambda _bootstrap, topic, *_: done.append(f"{topic} read"))
    monkeypatch.setattr(steps, "forget_peak", lambda pid: done.append(f"peak of {pid} forgotten"))
    monkeypatch.setattr(steps, "delete_topics", lambda _bootstrap: done.append("topics deleted"))
    steady = steps.Steady(20)
    monkeypatch.setattr(steady.producer, "run", lambda load, _bootstrap, topic: done.append(f"{load.sent} to {topic}"))

    def measure(_broker: object) -> dict[str, float]:
        done.append("measured")
        return {}

    def make() -> FakeBroker:
        return FakeBroker(done)

    on_steady = steady.step(measure)
    on_steady(make)
    on_steady(make)
    steady.close()
    warming = [f"{what}topic of {n}{rest}" for n in (1, 6) for what, rest in (("10 to ", ""), ("", " read"))]
    each = [f"peak of {FakeBroker.pid} forgotten", "measured", "topics deleted"]
    assert done == ["started", *warming, "made ready", *each, *each, "closed"]
