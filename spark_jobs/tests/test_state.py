"""How often each plane flew and how late it was, and when it was long on the ground; with a crash on the way."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from pyspark.sql import SparkSession

from jvm.spark import Spark
from kwire.testing.factories import BrokerFactory, TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import topics as job_topics
from spark_jobs.state import main
from spark_jobs.tests import topics
from spark_jobs.tests.flights import flights
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.tests.producing import Sent, send

pytestmark = pytest.mark.xdist_group("spark-2")

JANUARY = slice(0, 27_004)
CARRIER = "US"
DAY_MS = 24 * 60 * 60 * 1000
IDLE_MS, WATERMARK_MS = 5 * DAY_MS, 2 * DAY_MS
SCHEMA = "carrier STRING, tailnum STRING, time_hour TIMESTAMP, dep_delay DOUBLE"
OPTIONS = ["--by", "tailnum", "--add", "dep_delay", "--where", f"carrier = '{CARRIER}'", "--schema", SCHEMA]
OPTIONS += ["--time", "time_hour", "--idle", "5 days", "--watermark", "2 days"]
NOT_CONNECTED = "state: Spark's Python did not connect to it: "
Silence = tuple[str, str, str]
"""Plane, since, until."""


@pytest.fixture(scope="module")
def sent() -> list[Sent]:
    """A month; flights of one day and the next come in any order."""
    chance = random.Random(31)
    given = flights(JANUARY, partitions=3)
    order = sorted(range(len(given)), key=lambda number: number + chance.randint(0, 800))
    return [given[number] for number in order]


@pytest.fixture(scope="module")
def source(kwire_broker: BrokerProcess, sent: list[Sent]) -> str:
    topic = TopicFactory(kwire_broker, "flights")(partitions=3, configs={"retention.ms": -1})
    send(kwire_broker.bootstrap, topic, sent)
    return topic


def flown(sent: Iterable[Sent]) -> dict[str, list[tuple[int, float]]]:
    """The hours (ms) and delays of the carrier's flights that were not cancelled, by plane."""
    found = defaultdict(list)
    for flight in sent:
        if flight.key is not None and flight.value is not None and flight.row["carrier"] == CARRIER:
            found[flight.key.decode()].append((flight.timestamp, flight.row["dep_delay"] or 0.0))
    return found


def expected_totals(sent: Iterable[Sent]) -> dict[str, dict[str, Any]]:
    """By plane."""
    return {
        plane: {
            "key": plane,
            "count": len(entries),
            "total": sum(delay for _, delay in entries),
            "first": iso(min(at for at, _ in entries)),
            "last": iso(max(at for at, _ in entries)),
        }
        for plane, entries in flown(sent).items()
    }


def expected_silences(sent: Iterable[Sent]) -> set[Silence]:
    """Those whose end the watermark has reached."""
    planes = flown(sent)
    watermark = max(at for entries in planes.values() for at, _ in entries) - WATERMARK_MS
    return {
        (plane, iso(since), iso(since + IDLE_MS))
        for plane, entries in planes.items()
        for since, _ in entries
        if since + IDLE_MS <= watermark and not any(since < at <= since + IDLE_MS for at, _ in entries)
    }


def iso(ms: int) -> str:
    """As Spark writes times."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def counts(broker: BrokerProcess, topic: str) -> dict[str, list[int]]:
    """What was told of each plane, in its order."""
    found = defaultdict(list)
    for record in topics.records(broker.bootstrap, topic):
        found[record.key.decode()].append(json.loads(record.value)["count"])
    return found


def silences(broker: BrokerProcess, topic: str) -> Counter[Silence]:
    """How often each was told."""
    found: Counter[Silence] = Counter()
    for record in topics.records(broker.bootstrap, topic):
        told = json.loads(record.value)
        assert record.key.decode() == told["key"]
        found[told["key"], told["since"], told["until"]] += 1
    return found


def test_broker_and_job_are_killed_and_go_on_with_state_and_timers(
    each_spark: Spark, kwire_broker_factory: BrokerFactory, sent: list[Sent], tmp_path: Path
) -> None:
    broker = kwire_broker_factory()
    create_topic(broker.bootstrap, "flights", 3, {"retention.ms": -1})
    send(broker.bootstrap, "flights", sent)
    totals, told = "totals", "told"
    checkpoint = tmp_path / "checkpoint"
    arguments = ["flights", totals, told, *OPTIONS, "-b", broker, "--checkpoint", checkpoint]
    arguments += ["--max-offsets-per-trigger", 9_000]
    expected, expected_told = expected_totals(sent), expected_silences(sent)
    with JobProcess("state", *arguments, folder=tmp_path, spark=each_spark) as job:
        job.wait_until(lambda: len(batches(checkpoint)) >= 1)
        broker.kill()
        broker.start()
        job.wait_until(lambda: len(batches(checkpoint)) >= 2)
        job.kill()
    broker.kill()
    broker.start()
    before, told_before = topics.last_values(broker.bootstrap, totals), set(silences(broker, told))
    assert sum(each["count"] for each in before.values()) < sum(each["count"] for each in expected.values())
    assert set() < told_before < expected_told
    # Timers that were set before the crash are to find some of the others.
    assert any(before.get(plane, {}).get("last") == since for plane, since, _ in expected_told - told_before)
    with JobProcess("state", *arguments, folder=tmp_path, spark=each_spark, submit=True) as job:
        job.finish()
    assert topics.last_values(broker.bootstrap, totals) == expected
    assert set(silences(broker, told)) == expected_told
    # It began nothing anew: no count is lower than one before it.
    assert all(each == sorted(each) for each in counts(broker, totals).values())


def test_a_python_of_spark_that_did_not_start_in_time_is_started_again(
    each_spark: Spark, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    """Spark waits ten seconds for it, whether it is slow or gone."""
    source = kwire_topic_factory(configs={"retention.ms": -1})
    send(kwire_broker.bootstrap, source, [departure("N1", 400 * DAY_MS), departure("N1", 401 * DAY_MS)])
    totals, told = kwire_topic_factory.name(), kwire_topic_factory.name()
    arguments = [source, totals, told, *OPTIONS, "-b", kwire_broker, "--checkpoint", tmp_path / "state"]
    python = tmp_path / "python"
    first_of_driver = f'case "$*" in *driver_worker*) mkdir {tmp_path}/asked && exit 1;; esac'
    python.write_text(f'#!/bin/sh\n{first_of_driver}\nexec {each_spark.python} "$@"\n')
    python.chmod(0o755)
    environment = {"PYSPARK_PYTHON": str(python)}
    with JobProcess("state", *arguments, folder=tmp_path, spark=each_spark, environment=environment) as job:
        lines = [line for line in job.finish().splitlines() if line.endswith("; once more")]
    assert lines[0].startswith(f"{NOT_CONNECTED}java.net.SocketTimeoutException: ")
    assert (tmp_path / "asked").exists()
    assert topics.last_values(kwire_broker.bootstrap, totals)["N1"]["count"] == 2


def test_what_is_told_does_not_depend_on_batches_and_what_is_late_changes_nothing(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    sent: list[Sent],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = kwire_topic_factory(partitions=3, configs={"retention.ms": -1})
    send(kwire_broker.bootstrap, source, sent)
    totals, told = kwire_topic_factory.name(), kwire_topic_factory.name()
    arguments = [source, totals, told, *OPTIONS, "-b", kwire_broker, "--checkpoint", tmp_path / "state"]
    run(main, *arguments)
    expected = expected_silences(sent)
    assert len({plane for plane, _, _ in expected}) < len(expected), "some planes are silent twice"
    assert silences(kwire_broker, told) == dict.fromkeys(expected, 1)
    assert topics.last_values(kwire_broker.bootstrap, totals) == expected_totals(sent)
    assert {len(each) for each in counts(kwire_broker, totals).values()} == {1}
    # The watermark is days past what comes late; what comes next moves it on, or is no entry at all.
    start, end = (choose(at for entries in flown(sent).values() for at, _ in entries) for choose in (min, max))
    some = sorted(flown(sent))
    following = departure(some[0], end + 5 * DAY_MS)
    others = [departure(some[1], start + DAY_MS), departure(None, end), departure(some[2], None)]
    others += [following._replace(value=value) for value in (None, b'{"tailnum": ')]
    send(kwire_broker.bootstrap, source, [*others, following])
    with pytest.raises(SystemExit, match=r"^1$"):
        run(main, *arguments)
    said = capsys.readouterr()
    assert said.out == ""
    *again, line = said.err.splitlines()
    # Where Spark is slow, it was asked once more.
    assert all(each.startswith(NOT_CONNECTED) and each.endswith("; once more") for each in again)
    assert "a value does not follow its schema" in line
    run(main, *arguments, "--malformed", "drop")
    after = [*sent, following]
    assert expected_silences(after) > expected
    assert silences(kwire_broker, told) == dict.fromkeys(expected_silences(after), 1)
    assert topics.last_values(kwire_broker.bootstrap, totals) == expected_totals(after)


def departure(plane: str | None, at: int | None) -> Sent:
    value = {"carrier": CARRIER, "tailnum": plane, "time_hour": None if at is None else iso(at), "dep_delay": 7}
    return Sent(0, None if plane is None else plane.encode(), json.dumps(value).encode(), (), at or 0)


def test_what_a_user_can_put_right_is_one_line(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_topics, "WAIT_MS", 5_000)
    source, totals, told = kwire_topic_factory(), kwire_topic_factory.name(), kwire_topic_factory.name()
    arguments = [*OPTIONS, "-b", kwire_broker, "--checkpoint", tmp_path / "state"]
    for names, options, complaint in [
        (["none", totals, told], [], f"{kwire_broker} has no topic none"),
        ([source, totals, source], [], "must be three topics"),
        ([source, totals, told], ["-b", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
        ([source, totals, told], ["--schema", "tailnum TEXT"], "'tailnum TEXT' is no schema"),
        ([source, totals, told], ["--by", "plane"], "UNRESOLVED_COLUMN"),
        ([source, totals, told], ["--time", "hour(time_hour"], "PARSE_SYNTAX_ERROR"),
    ]:
        with pytest.raises(SystemExit, match=r"^1$"):
            run(main, *names, *arguments, *options)
        line = one_line(capsys)
        assert line.startswith("state: ")
        assert complaint in line
    with pytest.raises(click.BadParameter, match="7 moons"):
        run(main, source, totals, told, *arguments, "--idle", "7 moons")


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """All that the job said."""
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    return line
