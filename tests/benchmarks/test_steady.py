"""Brokers that live on from step to step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import steps


class FakeBroker:
    """Writes down what is done to it."""

    bootstrap = "127.0.0.1:9"
    pid = os.getpid()

    def __init__(self, done: list[str], data_dir: Path) -> None:
        self.config: dict[str, object] = {}
        self.data_dir = data_dir
        self._done = done

    def start(self) -> None:
        self._done.append(f"started, deletes after {self.config['log.segment.delete.delay.ms']} ms")

    def close(self) -> None:
        self._done.append("closed")


def test_is_warmed_once_and_the_machine_made_ready_before_the_first_load(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done: list[str] = []
    monkeypatch.setattr(steps, "make_ready", lambda: done.append("made ready"))
    monkeypatch.setattr(steps, "new_topic", lambda _bootstrap, partitions: f"topic of {partitions}")
    monkeypatch.setattr(steps, "consume", lambda _bootstrap, topic, *_: done.append(f"{topic} read"))
    monkeypatch.setattr(steps, "forget_peak", lambda pid: done.append(f"peak of {pid} forgotten"))
    monkeypatch.setattr(steps, "delete_topics", lambda _bootstrap: done.append("topics deleted"))
    steady = steps.Steady(20)
    monkeypatch.setattr(
        steady.producer, "run", lambda load, _bootstrap, topic: done.append(f"{load.records} to {topic}")
    )

    def measure(_broker: object) -> dict[str, float]:
        done.append("measured")
        return {}

    def make() -> FakeBroker:
        return FakeBroker(done, tmp_path)

    on_steady = steady.step(measure)
    on_steady(make)
    on_steady(make)
    steady.close()
    warming = [f"{what}topic of {n}{rest}" for n in (1, 6) for what, rest in (("10 to ", ""), ("", " read"))]
    each = [f"peak of {FakeBroker.pid} forgotten", "measured", "topics deleted"]
    first = ["started, deletes after 1000 ms", *warming, "topics deleted", "made ready"]
    assert done == [*first, *each, *each, "closed"]


def deleting(monkeypatch: pytest.MonkeyPatch, data_dir: Path, sleep: Callable[[float], None]) -> None:
    """Measures nothing on a steady broker that then deletes what is in `data_dir`."""
    monkeypatch.setattr(steps, "delete_topics", lambda _bootstrap: None)
    monkeypatch.setattr(steps.time, "sleep", sleep)
    steady = steps.Steady(0)
    monkeypatch.setattr(steady, "_warm", lambda _broker: None)
    try:
        steady.step(lambda _broker: {})(lambda: FakeBroker([], data_dir))
    finally:
        steady.close()


def test_the_next_side_begins_when_the_files_of_what_was_deleted_are_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    going = [tmp_path / "t-0", tmp_path / "a-topic-11.4a6f3e-delete"]
    staying = [tmp_path / "__consumer_offsets-7", tmp_path / "__cluster_metadata-0", tmp_path / "meta.properties"]
    for folder in (*going, *staying):
        folder.mkdir()
    deleting(monkeypatch, tmp_path, lambda _seconds: going.pop().rmdir())
    assert going == []
    assert all(folder.exists() for folder in staying)


def test_files_that_stay_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    monkeypatch.setattr(steps, "_DELETED_WITHIN_S", 0.0)
    with pytest.raises(RuntimeError, match="t-0"):
        deleting(monkeypatch, tmp_path, lambda _seconds: None)
