"""What is watched in two ways at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import watcher
from benchmarks.watcher import Spread, passing


def watch(monkeypatch: pytest.MonkeyPatch, *, arrived: int, acknowledged: int) -> None:
    for name, count in (("arriving", arrived), ("producing", acknowledged)):

        @contextmanager
        def watched(*_: object, count: int = count) -> Iterator[Spread]:
            spread = Spread()
            yield spread
            spread.count = count

        monkeypatch.setattr(watcher, name, watched)


def test_all_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, arrived=101, acknowledged=100)  # the first one is not timed by who sends it
    with passing("127.0.0.1:9", "t", 1000) as (ages, acks):
        pass
    assert (ages.count, acks.count) == (101, 100)


def test_fewer_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    watch(monkeypatch, arrived=99, acknowledged=100)
    with pytest.raises(RuntimeError, match="100 records were acknowledged, 99 arrived"), passing("127.0.0.1:9", "t", 1):
        pass
