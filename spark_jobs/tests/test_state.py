"""How often each plane flew and how late it was, and when it was long on the ground: with crashes on the way."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from jvm.spark import SPARK_4_0, SPARK_4_2, Spark
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from spark_jobs.state import main
from spark_jobs.tests import topics
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.tests.nyc import FLIGHT, ISO, Row, flights, publish

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

IDLE = timedelta(days=7)
WATERMARK = timedelta(days=2)
OPTIONS = ["--by", "tailnum", "--add", "dep_delay", "--where", "dep_time IS NOT NULL", "--schema", FLIGHT]
OPTIONS += ["--time", "time", "--idle", "7 days", "--watermark", "2 days"]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """One airline's month; those of one day and the next come in any order."""
    chance = random.Random(31)
    given = [row for row in flights("2013-01-01", "2013-01-31") if row["carrier"] == "UA" and row["tailnum"]]
    order = sorted(range(len(given)), key=lambda number: number + chance.randint(0, 150))
    return [given[number] for number in order]


@pytest.fixture(scope="module")
def source(kwire_broker: BrokerProcess, rows: list[Row]) -> str:
    topic = TopicFactory(kwire_broker, "flights")(partitions=3)
    publish(kwire_broker.bootstrap, topic, rows)
    return topic


def expected_totals(rows: list[Row]) -> dict[str, Row]:
    """By plane."""
    table = pd.DataFrame([row for row in rows if row["dep_time"]])
    found = table.groupby("tailnum").agg(
        count=("flight", "size"), total=("dep_delay", "sum"), first=("time", "min"), last=("time", "max")
    )
    return {row["key"]: row for row in found.reset_index(names="key").to_dict("records")}


def expected_silences(rows: list[Row]) -> set[tuple[str, str, str]]:
    """(plane, since, until): those whose end the watermark has reached."""
    table = pd.DataFrame([row for row in rows if row["dep_time"]])
    table = table.assign(time=pd.to_datetime(table.time)).sort_values(["tailnum", "time"])
    until = table.time + IDLE
    following = table.groupby("tailnum").time.shift(-1)
    told = table[(following.isna() | (following > until)) & (until <= table.time.max() - WATERMARK)]
    return {
        (row.tailnum, row.time.strftime(ISO), (row.time + IDLE).strftime(ISO)) for row in told.itertuples(index=False)
    }


def silences(broker: BrokerProcess, topic: str) -> list[tuple[str, str, str]]:
    found = []
    for record in topics.records(broker.bootstrap, topic):
        told = json.loads(record.value)
        assert record.key.decode() == told["key"]
        found.append((told["key"], told["since"], told["until"]))
    return found


@pytest.mark.parametrize("version", [SPARK_4_0, SPARK_4_2], ids=lambda version: version.version)
def test_state_is_right_although_the_driver_was_killed(
    version: Spark,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    source: str,
    rows: list[Row],
    tmp_path: Path,
) -> None:
    totals, told = kwire_topic_factory.name(), kwire_topic_factory.name()
    arguments = [source, totals, told, *OPTIONS, "-b", kwire_broker, "--checkpoint", tmp_path / "state"]
    arguments += ["--max-offsets-per-trigger", 800]
    with JobProcess("state", *arguments, folder=tmp_path, spark=version) as job:
        job.wait_until(lambda: len(batches(tmp_path / "state")) >= 3)
        job.kill()
    partial = sum(row["count"] for row in topics.last_values(kwire_broker.bootstrap, totals).values())
    expected = expected_totals(rows)
    assert 0 < partial < sum(row["count"] for row in expected.values())
    with JobProcess("state", *arguments, folder=tmp_path, spark=version, submit=True) as job:
        job.finish()
    assert topics.last_values(kwire_broker.bootstrap, totals) == expected
    assert set(silences(kwire_broker, told)) == expected_silences(rows)


def test_what_is_told_does_not_depend_on_batches(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    source: str,
    rows: list[Row],
    tmp_path: Path,
) -> None:
    """A month in one batch."""
    totals, told = kwire_topic_factory.name(), kwire_topic_factory.name()
    run(main, source, totals, told, *OPTIONS, "-b", kwire_broker, "--checkpoint", tmp_path / "state")
    found = silences(kwire_broker, told)
    expected = expected_silences(rows)
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert len({key for key, _, _ in expected}) < len(expected), "some planes are silent twice"
    assert topics.last_values(kwire_broker.bootstrap, totals) == expected_totals(rows)
    assert len(list(topics.records(kwire_broker.bootstrap, totals))) == len(expected_totals(rows))
