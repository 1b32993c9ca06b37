"""The word counts of a whole novel, through kwire and Spark, with crashes on the way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jvm.spark import SPARK_4_0
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs.tests import topics
from spark_jobs.tests.jobs import JobProcess, batches
from spark_jobs.word_counts import BOOK, Count, Publish, parse

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

LINES = "book-lines"
START = datetime(2024, 1, 1, 20, tzinfo=UTC)
SECONDS_PER_LINE = 5
BATCH = 500
"""Lines in a batch, few enough that a crash comes in the middle of the book."""
BATCHES = 13
"""How many batches that makes."""
BATCHES_BEFORE_CRASH = 3


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


class Counting:
    """The second half of the pipeline, with a checkpoint and a topic of its own, on a small trigger."""

    def __init__(self, broker: BrokerProcess, folder: Path, topic: str) -> None:
        create_topic(broker.bootstrap, topic, 3, {})
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.arguments = ["count", "--bootstrap-servers", broker.bootstrap, "--lines-topic", LINES]
        self.arguments += ["--counts-topic", topic, "--checkpoint", str(self.checkpoint)]
        self.arguments += ["--max-offsets-per-trigger", str(BATCH)]

    def start(self) -> JobProcess:
        return JobProcess("word_counts", *self.arguments, folder=self.folder, submit=True)

    def run_to_its_end(self) -> None:
        with self.start() as job:
            job.finish()

    def batches(self) -> int:
        """How many batches are complete."""
        return len(batches(self.checkpoint))


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A broker that a test may kill."""
    with BrokerProcess() as process:
        yield process


@pytest.fixture(scope="module")
def published(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The topic with the book, written by the job."""
    create_topic(broker.bootstrap, LINES, 3, {})
    folder = tmp_path_factory.mktemp("publish")
    arguments = ["--bootstrap-servers", broker.bootstrap, "--lines-topic", LINES, "--start", _iso(START)]
    arguments += ["--seconds-per-line", str(SECONDS_PER_LINE)]
    with JobProcess("word_counts", "publish", *arguments, folder=folder, submit=True) as job:
        job.finish()
    return LINES


def test_every_line_of_the_book_is_in_the_topic_once(broker: BrokerProcess, published: str) -> None:
    got = [(record.key.decode(), json.loads(record.value)) for record in topics.records(broker.bootstrap, published)]
    assert sorted((int(key), value["text"]) for key, value in got) == sorted(text_lines().items())
    for key, value in got:
        assert value["line"] == int(key)
        assert value["read_at"] == _iso(START + timedelta(seconds=SECONDS_PER_LINE * int(key)))


def test_counts_are_right_although_driver_and_broker_were_killed(
    broker: BrokerProcess, published: str, tmp_path: Path
) -> None:
    counting = Counting(broker, tmp_path, "driver-killed")
    with counting.start() as job:
        job.wait_until(lambda: counting.batches() >= BATCHES_BEFORE_CRASH)
        job.kill()
    broker.kill()
    broker.start()
    assert counting.batches() < BATCHES
    partial = topics.last_values(broker.bootstrap, "driver-killed")
    assert 0 < sum(value["count"] for value in partial.values()) < 75_000
    counting.run_to_its_end()
    assert topics.last_values(broker.bootstrap, "driver-killed") == expected_counts()
    assert counting.batches() >= BATCHES


def test_counts_are_right_although_the_broker_was_killed(broker: BrokerProcess, published: str, tmp_path: Path) -> None:
    counting = Counting(broker, tmp_path, "broker-killed")
    with counting.start() as job:
        job.wait_until(lambda: counting.batches() >= BATCHES_BEFORE_CRASH)
        broker.kill()
        assert counting.batches() < BATCHES
        broker.start()
        # The clients inside Spark try again until the broker is back: the driver sees nothing of it.
        job.finish()
    assert topics.last_values(broker.bootstrap, "broker-killed") == expected_counts()
    # A run from the checkpoint finds nothing more to do, and changes nothing.
    before = len(list(topics.records(broker.bootstrap, "broker-killed")))
    counting.run_to_its_end()
    assert len(list(topics.records(broker.bootstrap, "broker-killed"))) == before


def test_the_command_line_has_the_defaults_of_a_local_broker() -> None:
    assert parse(["publish"]) == Publish("localhost:9092", "book-lines", BOOK, "2024-01-01T20:00:00Z", 5)
    assert parse(["count", "--follow"]) == Count(
        bootstrap_servers="localhost:9092",
        lines_topic="book-lines",
        counts_topic="book-words",
        checkpoint=Path("word-counts-checkpoint"),
        window="1 hour",
        watermark="10 minutes",
        max_offsets_per_trigger=10_000,
        follow=True,
    )


@pytest.mark.parametrize("arguments", [[], ["sing"], ["publish", "--seconds-per-line", "few"], ["count", "--topic"]])
def test_a_wrong_command_line_ends_with_its_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(arguments)
    assert "usage: word_counts" in capsys.readouterr().err


def test_the_connector_is_of_the_version_of_spark() -> None:
    import pyspark

    assert pyspark.__version__ == SPARK_4_0.version
