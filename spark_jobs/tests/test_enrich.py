"""Flights with the planes that flew them, and with the weather that they left in; and each flight once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import topics as cluster
from spark_jobs.enrich import main
from spark_jobs.tests import topics
from spark_jobs.tests.jobs import JobProcess, batches, run, undone
from spark_jobs.tests.nyc import (
    AIRLINE,
    FLIGHT,
    PLANE,
    WEATHER,
    Row,
    airlines,
    delete,
    flights,
    planes,
    publish,
    weather,
)
from spark_jobs.tests.producing import Sent, send

pytestmark = pytest.mark.xdist_group("spark")

DAY_MS = 1_700_000_000_000
"""A day."""
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01}


def values(broker: BrokerProcess, topic: str) -> list[Row]:
    return [json.loads(record.value) for record in topics.records(broker.bootstrap, topic)]


def counted(rows: list[Row]) -> Counter[str]:
    """To compare rows whatever their order."""
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def with_planes(rows: list[Row], table: dict[str, Row]) -> list[Row]:
    """What the job must write."""
    return [row | {"plane": table.get(row["tailnum"])} for row in rows]


def test_a_table_that_changes_while_the_stream_runs(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    bootstrap = kwire_broker.bootstrap
    source, target = kwire_topic_factory(partitions=3), kwire_topic_factory(partitions=3)
    table_topic = kwire_topic_factory(partitions=2, configs=COMPACTED)
    table = {row["tailnum"]: row for row in planes()}
    publish(bootstrap, table_topic, table.values())
    rows = [row for row in flights("2013-03-01", "2013-03-05") if row["tailnum"]]
    parts = [rows[:1500], rows[1500:3000], rows[3000:]]
    ordinary = ["--table", table_topic, "--on", "tailnum", "--as", "plane", "--table-schema", PLANE]
    arguments = ["table", source, target, *ordinary, "--schema", FLIGHT, "-b", bootstrap, "--checkpoint"]
    arguments += [tmp_path / "state", "--max-offsets-per-trigger", 1000]
    state = tmp_path / "state"

    def done(expected: list[Row]) -> Callable[[], bool]:
        """Whether so many have been written, and the last batch is over."""
        return lambda: (
            0 < len(batches(state)) == len(list((state / "offsets").glob("[0-9]*")))
            and topics.count(bootstrap, target) >= len(expected)
        )

    publish(bootstrap, source, parts[0])
    with JobProcess("enrich", *arguments, "--follow", folder=tmp_path, submit=True) as job:
        expected = with_planes(parts[0], table)
        job.wait_until(done(expected))
        assert counted(values(kwire_broker, target)) == counted(expected)
        # A plane is repainted, another one scrapped, a third one is new; all three fly in the second part.
        unknown = next(row["tailnum"] for row in parts[1] if row["tailnum"] not in table)
        known = [tail for tail, _ in Counter(row["tailnum"] for row in parts[1]).most_common() if tail in table][:3]
        changed, scrapped, back = known
        table[changed] = table[changed] | {"model": "repainted"}
        table[unknown] = table[changed] | {"tailnum": unknown, "seats": None}
        publish(bootstrap, table_topic, [table[changed], table[unknown]])
        for tail in (scrapped, back):
            delete(bootstrap, table_topic, tail)
        publish(bootstrap, table_topic, [table[back]])
        del table[scrapped]
        publish(bootstrap, source, parts[1])
        expected += with_planes(parts[1], table)
        job.wait_until(done(expected))
        job.kill()
    found = values(kwire_broker, target)
    assert counted(found) == counted(expected)
    assert {"repainted"} == {row["plane"]["model"] for row in found[-1000:] if row["tailnum"] == changed}

    # A crash just before the last batch was told to be over: it comes again, and as it was, though the table changed.
    before = {tail: row | {"model": "later"} for tail, row in table.items()}
    publish(bootstrap, table_topic, before.values())
    size = len(found)
    undone(state)
    run(main, *arguments)
    again = values(kwire_broker, target)
    repeated = len(again) - size
    assert 0 < repeated <= 1000 + 3
    assert set(counted(again)) == set(counted(expected))
    # The next batch sees the change.
    publish(bootstrap, source, parts[2])
    run(main, *arguments)
    assert counted(values(kwire_broker, target)) - counted(again) == counted(with_planes(parts[2], before))
    # Two versions are kept, and what they need.
    assert len(list((state / "table").glob("*.json"))) == 2


def test_a_join_deals_no_key_out_anew(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
) -> None:
    """By something else than the key, in several tasks; --inner leaves out, --select chooses."""
    bootstrap = kwire_broker.bootstrap
    source, target, table_topic = (kwire_topic_factory(partitions=2) for _ in range(3))
    names = {row["carrier"]: row["name"] for row in airlines() if row["carrier"] not in {"UA", "DL"}}
    publish(bootstrap, table_topic, airlines(), lambda row: row["carrier"])
    for carrier in ("UA", "DL"):
        delete(bootstrap, table_topic, carrier)
    rows = [row for row in flights("2013-07-01", "2013-07-02") if row["tailnum"]]
    publish(bootstrap, source, rows)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)
    try:
        arguments = ["--table", table_topic, "--on", "carrier", "--as", "airline", "--table-schema", AIRLINE, "--inner"]
        arguments += ["--select", "flight, time, upper(airline.name) AS airline, string(record.key) AS tail"]
        run(main, "table", source, target, *arguments, "--schema", FLIGHT, "-b", bootstrap, "--checkpoint", tmp_path)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    expected: dict[str, list[Row]] = {}
    for row in rows:
        if row["carrier"] in names:
            told = {name: row[name] for name in ("flight", "time")} | {"airline": names[row["carrier"]].upper()}
            expected.setdefault(row["tailnum"], []).append(told | {"tail": row["tailnum"]})
    found: dict[str, list[Row]] = {}
    for record in topics.records(bootstrap, target):
        found.setdefault(record.key.decode(), []).append(json.loads(record.value))
    assert found == expected
    assert max(map(len, expected.values())) > 5


def with_weather(rows: list[Row], observed: list[Row]) -> list[Row]:
    """Each flight with the weather of the hour that it was to leave in, where it was observed."""
    left = pd.DataFrame(rows)
    left["hour"] = pd.to_datetime(left.time).dt.floor("h")
    right = pd.DataFrame({"origin": row["origin"], "hour": row["time"], "weather": row} for row in observed)
    right["hour"] = pd.to_datetime(right.hour)
    merged = left.merge(right, on=["origin", "hour"], how="left").drop(columns="hour")
    return merged.astype(object).where(merged.notna(), None).to_dict("records")


def test_two_streams_in_a_range_of_time(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    bootstrap = kwire_broker.bootstrap
    source, target = kwire_topic_factory(partitions=2), kwire_topic_factory()
    other = kwire_topic_factory(partitions=1)
    # Some hours nobody observed.
    rows, observed = flights("2013-08-17", "2013-08-26"), weather("2013-08-17", "2013-08-26")
    expected = with_weather(rows, observed)
    assert sum(row["weather"] is None for row in expected) > 200

    def step(first: str, last: str) -> None:
        """Publishes what is of these days, and runs the job."""
        publish(bootstrap, other, [row for row in observed if first <= row["time"] < last], lambda row: row["origin"])
        publish(bootstrap, source, [row for row in rows if first <= row["time"] < last])
        arguments = ["stream", source, target, "--with", other, "--on", "origin = weather.origin", "--as", "weather"]
        arguments += ["--schema", FLIGHT, "--with-schema", WEATHER, "--time", "time", "--with-time", "weather.time"]
        arguments += ["--from", "-59 minutes", "--watermark", "2 days", "--max-offsets-per-trigger", 3000]
        run(main, *arguments, "-b", bootstrap, "--checkpoint", tmp_path)

    step("2013-08-17", "2013-08-22T12")
    found = values(kwire_broker, target)
    assert not counted(found) - counted(expected)
    assert counted([row for row in found if row["weather"]]) == counted(
        [row for row in expected if row["weather"] and row["time"] < "2013-08-22T12"]
    )
    # Whether there is more for the latest flights, the streams have yet to tell.
    step("2013-08-22T12", "2013-09")
    found = values(kwire_broker, target)
    assert not counted(found) - counted(expected)
    missing = [json.loads(row) for row in (counted(expected) - counted(found)).elements()]
    latest = max(row["time"] for row in observed)
    two_days_before = (pd.Timestamp(latest) - pd.Timedelta("2 days")).strftime("%Y-%m-%dT%H")
    assert all(row["weather"] is None and row["time"] >= two_days_before for row in missing)
    assert any(row["weather"] is None for row in found)


def test_each_flight_once(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    bootstrap = kwire_broker.bootstrap
    source, target = kwire_topic_factory(partitions=3), kwire_topic_factory(partitions=3)
    rows = flights("2013-05-01", "2013-05-08")
    ident = ("carrier", "flight", "origin", "time")
    assert len({tuple(row[name] for name in ident) for row in rows}) == len(rows)
    chance = random.Random(13)
    # Every third flight is written again, up to 500 records later; some once more, when it is long forgotten.
    written = sorted(
        [(number, row) for number, row in enumerate(rows)]
        + [(number + chance.randint(1, 500), row) for number, row in enumerate(rows) if number % 3 == 0]
        + [(number + 5000, row) for number, row in enumerate(rows) if number % 10 == 0],
        key=lambda each: each[0],
    )
    arguments = ["distinct", source, target, *(word for name in ident for word in ("--id", name)), "--time", "time"]
    arguments += ["--schema", FLIGHT, "--watermark", "2 days", "--max-offsets-per-trigger", 4000]
    arguments += ["-b", bootstrap, "--checkpoint", tmp_path]
    half = len(written) // 2
    for part in (written[:half], written[half:]):
        publish(bootstrap, source, (row for _, row in part))
        run(main, *arguments)
    assert counted(values(kwire_broker, target)) == counted(rows)


def test_an_id_is_forgotten_with_time(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
) -> None:
    """By the time and the key of the record itself; the copies are as the records were."""
    target = kwire_topic_factory.name()
    hour = 3_600_000
    # a and b come again while they are known; d comes too late; then a and b are forgotten, c is not.
    sent = [("a", 0), ("a", 4), ("b", 2), ("b", 6), ("c", 13), ("c", 14), ("d", 7), ("a", 10), ("b", 13), ("a", 11)]
    producer = Producer({"bootstrap.servers": kwire_broker.bootstrap})
    for key, at in sent:
        headers = [("at", str(at).encode())]
        producer.produce(kwire_topic, key=key, value=b"not JSON", headers=headers, timestamp=DAY_MS + at * hour)
    producer.flush()
    arguments = ["--id", "record.key", "--watermark", "5 hours", "-b", kwire_broker, "--checkpoint", tmp_path]
    run(main, "distinct", kwire_topic, target, *arguments, "--max-offsets-per-trigger", 1)
    copies = [(record.key, record.value, *record.headers) for record in topics.records(kwire_broker.bootstrap, target)]
    expected = [("a", 0), ("b", 2), ("c", 13), ("a", 10), ("b", 13)]
    assert copies == [(key.encode(), b"not JSON", ("at", str(at).encode())) for key, at in expected]


@pytest.mark.parametrize(
    ("command", "options", "complaint"),
    [
        ("table", ["--table", "nowhere"], "has no topic nowhere"),
        ("table", ["--on", "tail"], "UNRESOLVED_COLUMN"),
        ("table", ["--select", "flight,"], "PARSE_SYNTAX_ERROR"),
        ("table", ["--table-schema", "tailnum STRONG"], "'tailnum STRONG' is no schema"),
        ("table", ["-b", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
        ("stream", ["--on", "origin < weather.origin"], "equality"),
        ("stream", ["--time", "tim"], "UNRESOLVED_COLUMN"),
        ("stream", ["--from", "1 hour", "--to", "0 hours"], "nothing can match: --from is later than --to"),
        ("distinct", ["--id", "nope("], "PARSE_SYNTAX_ERROR"),
        ("distinct", ["--schema", "carrier DOUBLE, time TIMESTAMP"], "a value does not follow its schema"),
    ],
)
def test_what_is_wrong_is_one_line(
    command: str,
    options: list[str],
    complaint: str,
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    flown: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "WAIT_MS", 5_000)
    target = kwire_topic_factory.name()
    ordinary: dict[str, list[Any]] = {
        "table": ["--table", flown, "--table-schema", PLANE],
        "stream": ["--with", flown, "--as", "weather", "--with-schema", WEATHER, "--on", "origin = weather.origin"],
        "distinct": ["--id", "carrier"],
    }
    arguments = [command, flown, target, "-b", kwire_broker, "--checkpoint", tmp_path, *ordinary[command]]
    arguments += ["--schema", FLIGHT]
    if command != "table":
        arguments += ["--time", "time", "--watermark", "1 day"]
    if command == "stream":
        arguments += ["--with-time", "weather.time"]
    with pytest.raises(SystemExit, match=r"^1$"):
        run(main, *arguments, *options)
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"enrich {command}: ")
    assert complaint in line


@pytest.fixture(scope="module")
def flown(kwire_broker: BrokerProcess) -> str:
    """A topic with a hundred flights."""
    topic = TopicFactory(kwire_broker, "flown")()
    publish(kwire_broker.bootstrap, topic, flights("2013-01-01", "2013-01-01")[:100])
    return topic


def test_malformed_values_can_be_left_out(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
) -> None:
    target = kwire_topic_factory.name()
    rows = flights("2013-01-01", "2013-01-01")[:100]
    wrong = [row | {"flight": "many"} for row in rows[:50]]
    publish(kwire_broker.bootstrap, kwire_topic, [*wrong, *rows])
    twice = [Sent(0, None, json.dumps(row).encode() * 2) for row in rows[:10]]
    send(kwire_broker.bootstrap, kwire_topic, twice)
    delete(kwire_broker.bootstrap, kwire_topic, "a record without a value")
    arguments = ["--id", "record.offset", "--schema", FLIGHT, "--watermark", "1 day", "--malformed", "drop"]
    run(main, "distinct", kwire_topic, target, *arguments, "-b", kwire_broker, "--checkpoint", tmp_path)
    assert counted(values(kwire_broker, target)) == counted(rows)


def test_more_than_one_object_is_a_malformed_value(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    send(kwire_broker.bootstrap, kwire_topic, [Sent(0, None, b'{"k": "1"}{"k": "2"}')])
    arguments = ["--id", "k", "--schema", "k STRING", "--watermark", "1 day", "--checkpoint", tmp_path]
    with pytest.raises(SystemExit, match=r"^1$"):
        run(main, "distinct", kwire_topic, kwire_topic_factory.name(), *arguments, "-b", kwire_broker)
    assert "a value does not follow its schema: " in capsys.readouterr().err


def test_records_without_an_id_are_not_one(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    source, target = kwire_topic_factory(), kwire_topic_factory.name()
    publish(kwire_broker.bootstrap, source, [{"id": 1}, {"n": 2}, {"n": 3}, {"id": 1}], key=lambda row: None)
    words = ["--id", "id", "--schema", "id INT, n INT", "--watermark", "1 hour", "--checkpoint", tmp_path]
    run(main, "distinct", source, target, *words, "-b", kwire_broker.bootstrap)
    assert counted(values(kwire_broker, target)) == counted([{"id": 1}, {"n": 2}, {"n": 3}])


def test_names_with_dots_and_a_table_that_was_made_anew(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BrokerProcess() as broker:
        words = ["table", "asked", "told", "--table", "db.public.planes", "--schema", "n INT"]
        words += ["--table-schema", "model STRING", "-b", broker.bootstrap, "--checkpoint", tmp_path]
        for topic in ("asked", "db.public.planes"):
            create_topic(broker.bootstrap, topic, 1, {})
        publish(broker.bootstrap, "db.public.planes", [{"model": "B 737"}], key=lambda row: "a")
        publish(broker.bootstrap, "asked", [{"n": 1}], key=lambda row: "a")
        run(main, *words)
        assert values(broker, "told") == [{"n": 1, "db.public.planes": {"model": "B 737"}}]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics(["db.public.planes"])["db.public.planes"].result(30)
        create_topic(broker.bootstrap, "db.public.planes", 1, {})
        publish(broker.bootstrap, "db.public.planes", [{"model": "A 320"}] * 3, key=lambda row: "a")
        capsys.readouterr()
        with pytest.raises(SystemExit, match=r"^1$"):
            run(main, *words)
        assert "db.public.planes was made anew" in capsys.readouterr().err
