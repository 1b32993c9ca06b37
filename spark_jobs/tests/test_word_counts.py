"""The word counts of a whole novel, through kwire and Spark, with crashes on the way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from pyspark.sql import SparkSession

from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import topics as job_topics
from spark_jobs.tests import topics
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.word_counts import BOOK, main

pytestmark = pytest.mark.xdist_group("spark")

LINES, COUNTS = "lines-of-a-book", "words-of-a-book"
START = datetime(2024, 1, 1, 20, tzinfo=UTC)
SECONDS_PER_LINE = 5
BATCH = 500
"""Lines in a batch, few enough that a crash comes in the middle of the book."""
BATCHES = 13
"""How many batches that makes."""


def text_lines() -> dict[int, str]:
    """The lines of the book that say something, by their number."""
    return {number: line for number, line in enumerate(BOOK.read_text().split("\n")) if line.strip()}


def expected_counts() -> dict[str, dict]:
    """What the second topic must hold in the end: the same count, made without Spark."""
    counts: Counter[tuple[datetime, str]] = Counter()
    for number, line in text_lines().items():
        hour = (START + timedelta(seconds=SECONDS_PER_LINE * number)).replace(minute=0, second=0)
        counts.update((hour, word) for word in re.findall(r"[^\W\d_]+(?:’[^\W\d_]+)*", line.lower()))
    return {
        f"{_iso(hour)} {word}": {
            "window_start": _iso(hour),
            "window_end": _iso(hour + timedelta(hours=1)),
            "word": word,
            "count": count,
        }
        for (hour, word), count in counts.items()
    }


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker that a test may kill."""
    with BrokerProcess() as process:
        yield process


@pytest.fixture(scope="module")
def published(spark: SparkSession, broker: BrokerProcess) -> str:
    """The topic with the book, written by the job."""
    create_topic(broker.bootstrap, LINES, 3, {})
    words = ["-b", broker.bootstrap, "--lines-topic", LINES, "--start", _iso(START)]
    run(main, "publish", *words, "--seconds-per-line", SECONDS_PER_LINE)
    return LINES


def test_every_line_of_the_book_is_in_the_topic_once(broker: BrokerProcess, published: str) -> None:
    got = [(record.key.decode(), json.loads(record.value)) for record in topics.records(broker.bootstrap, published)]
    assert sorted((int(key), value["text"]) for key, value in got) == sorted(text_lines().items())
    for key, value in got:
        assert value["line"] == int(key)
        assert value["read_at"] == _iso(START + timedelta(seconds=SECONDS_PER_LINE * int(key)))


def test_counts_are_right_although_broker_and_driver_were_killed(
    spark: SparkSession, broker: BrokerProcess, published: str, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    arguments = ["count", "-b", broker.bootstrap, "--lines-topic", published, "--counts-topic", COUNTS]
    arguments += ["--checkpoint", checkpoint, "--max-offsets-per-trigger", BATCH]
    with JobProcess("word_counts", *arguments, folder=tmp_path, submit=True) as job:
        job.wait_until(lambda: len(batches(checkpoint)) >= 2)
        broker.kill()
        broker.start()
        # The clients inside Spark try again until the broker is back: the driver sees nothing of it.
        since = len(batches(checkpoint))
        job.wait_until(lambda: len(batches(checkpoint)) >= since + 2)
        job.kill()
    broker.kill()
    broker.start()
    assert len(batches(checkpoint)) < BATCHES
    partial = topics.last_values(broker.bootstrap, COUNTS)
    assert 0 < sum(value["count"] for value in partial.values()) < 75_000
    run(main, *arguments)
    assert topics.last_values(broker.bootstrap, COUNTS) == expected_counts()
    assert len(batches(checkpoint)) >= BATCHES
    # A run from the checkpoint finds nothing more to do, and changes nothing.
    before = topics.count(broker.bootstrap, COUNTS)
    run(main, *arguments)
    assert topics.count(broker.bootstrap, COUNTS) == before


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["publish", "--seconds-per-line", "few"], "'few' is not a valid integer range"),
        (["publish", "--start", "noon"], "'noon' does not match"),
        (["count", "--checkpoint", "x", "--window", "long"], "'long' is not a length of time"),
        (["count"], "Missing option '--checkpoint'"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(words: list[str], wrong: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        run(main, *words)
    assert wrong in raised.value.format_message()


def test_what_is_not_there_is_one_line(
    spark: SparkSession,
    broker: BrokerProcess,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_topics, "WAIT_MS", 5_000)
    for words, line in (
        (["-b", broker.bootstrap, "--lines-topic", "no-lines"], f"{broker.bootstrap} has no topic no-lines"),
        (["-b", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
    ):
        with pytest.raises(SystemExit, match=r"^1$"):
            run(main, "count", *words, "--checkpoint", tmp_path)
        assert capsys.readouterr().err.splitlines() == [f"word_counts count: {line}"]
