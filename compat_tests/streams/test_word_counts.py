"""The words of a book, counted in a stream, in windows and in a table, with both guarantees of Kafka Streams.

Two applications in one program, one a guarantee, are killed with -9 in the middle of their work, started again,
stopped, robbed of their local state, and started again. What they have told in the end is compared with a count made
here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from compat_tests.streams.book import Counts, Line, count, lines
from compat_tests.streams.program import Program
from compat_tests.streams.stage import Stage

pytestmark = pytest.mark.xdist_group("java")

BEFORE_THE_KILL, AT_THE_KILL, BEFORE_THE_LOSS = 2000, 3000, 5000
"""How many lines are written: before the work that is killed, when it is, and before the local state goes."""


class Story(NamedTuple):
    """What is left of it."""

    lines: list[Line]
    once: Counts
    passed_on: Counts
    """What the first half of the other application, which takes lines apart, has given to the second, which counts."""
    at_least_once: Counts
    restored: list[dict[str, int]]
    """Of each application: how many records its stores were restored from after the loss."""


@pytest.fixture(scope="module")
def story(kwire_broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    stage, book = Stage(kwire_broker.bootstrap), lines()
    program = Program(stage.bootstrap, stage.lines, stage.applications, tmp_path_factory.mktemp("streams"))
    try:
        program.start()
        stage.write(book[:BEFORE_THE_KILL])
        program.until(lambda: stage.check_all_told(book[:BEFORE_THE_KILL]))
        program.until(stage.check_all_committed)

        before = [stage.ends(f"{name}-words") for name in (stage.once, stage.at_least_once)]
        stage.write(book[BEFORE_THE_KILL:AT_THE_KILL])
        program.until(lambda: check_that_both_went_on(stage, before))
        program.kill()
        stage.write(book[AT_THE_KILL:BEFORE_THE_LOSS])
        program.start()
        program.until(lambda: stage.check_all_told(book[:BEFORE_THE_LOSS]))

        program.stop()
        shutil.rmtree(program.state)
        program.start()
        stage.write(book[BEFORE_THE_LOSS:])
        program.until(lambda: stage.check_all_told(book))
        restored = [program.restored(name) for name in (stage.once, stage.at_least_once)]
        program.stop()
        told = stage.told(stage.at_least_once)
        yield Story(book, stage.told(stage.once), stage.passed_on(stage.at_least_once), told, restored)
    finally:
        program.kill()


def check_that_both_went_on(stage: Stage, before: list[dict[int, int]]) -> None:
    after = [stage.ends(f"{name}-words") for name in (stage.once, stage.at_least_once)]
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_exactly_once(story: Story) -> None:
    assert story.once == count(story.lines)


def test_at_least_once(story: Story) -> None:
    """Only what was under way when the program was killed may come twice, out of each half of the application: what
    the first passed on twice, the second may have begun to count before."""
    least, twice = count(story.lines), count(story.lines[BEFORE_THE_KILL:AT_THE_KILL])
    passed_on = story.passed_on
    assert least.words <= passed_on.words <= least.words + twice.words
    assert least.hours <= passed_on.hours <= least.hours + twice.hours
    assert passed_on.words <= story.at_least_once.words <= passed_on.words + twice.words
    assert passed_on.hours <= story.at_least_once.hours <= passed_on.hours + twice.hours


def test_lost_stores_are_restored_from_their_changelogs(story: Story) -> None:
    known = count(story.lines[:BEFORE_THE_LOSS])
    for restored in story.restored:
        assert restored["counts"] >= len(known.words)
        assert restored["counts-by-hour"] >= len(known.hours)
        assert restored["letters"] >= len(known.letters)
