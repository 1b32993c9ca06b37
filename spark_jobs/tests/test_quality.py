"""Flights with faults planted among them: which topic each record comes to, with what, and after a crash too."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pytest
from pyspark.sql import SparkSession

from kwire.testing.factories import BrokerFactory, TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import command_line
from spark_jobs.quality import main
from spark_jobs.tests import nyc, topics
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.tests.producing import Sent, send, send_in_transaction

pytestmark = pytest.mark.xdist_group("spark")

HERE = Path(__file__).parent
STEP = 40
"""Every 40th flight: 8,420."""
EVERY = 41
"""So many flights from one planted fault to the next."""
PARTITIONS = 3
Row = dict[str, Any]
Place = tuple[int, int]
"""Partition and offset."""


class Planted(NamedTuple):
    """What a fault makes of a flight, and what must be said of it."""

    value: Callable[[Row], bytes | None]
    kind: str
    part: str


def as_json(row: Row) -> bytes:
    return json.dumps(row).encode()


def without(row: Row, name: str) -> Row:
    return {key: value for key, value in row.items() if key != name}


INVALID = "jsonschema.exceptions.ValidationError"
NO_JSON = "json.decoder.JSONDecodeError"
JSON_FAULTS = (
    Planted(lambda row: as_json({**row, "distance": str(row["distance"])}), INVALID, "is not of type 'integer'"),
    Planted(lambda row: as_json(without(row, "dest")), INVALID, "$: 'dest' is a required property"),
    Planted(lambda row: as_json({**row, "month": 13}), INVALID, "$.month: 13 is greater than the maximum of 12"),
    Planted(lambda row: as_json({**row, "date": "2013-02-30"}), INVALID, "$.date: '2013-02-30' is not a 'date'"),
    Planted(lambda row: as_json({**row, "gate": "B22"}), INVALID, "('gate' was unexpected)"),
    Planted(lambda row: as_json(row)[:-1], NO_JSON, "Expecting ',' delimiter"),
    Planted(lambda row: as_json({**row, "air_time": float("nan")}), "spark_jobs.checks.Bad", "NaN is not JSON"),
    Planted(lambda row: as_json(row).replace(b'"carrier": "', b'"carrier": "\xff'), "UnicodeDecodeError", "0xff"),
    Planted(lambda row: b"", NO_JSON, "Expecting value"),
    Planted(lambda row: b"[" * 100_000, "RecursionError", "recursion"),
    Planted(lambda row: None, "spark_jobs.checks.Bad", "no value"),
)

DATUM = fastavro.schema.load_schema(str(HERE / "flight.avsc"))
FRAME = b"\0\0\0\0\1"


def as_avro(row: Row) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, DATUM, {**row, "date": date.fromisoformat(row["date"])})
    return FRAME + target.getvalue()


AVRO_FAULTS = (
    Planted(lambda row: as_avro(row)[:-1], "EOFError", "the value ends within the datum"),
    Planted(lambda row: as_avro(row)[:9], "EOFError", "the value ends within the datum"),
    Planted(lambda row: as_avro(row) + b"ab", "spark_jobs.checks.Bad", "2 bytes are left after the datum"),
    Planted(lambda row: as_avro(row)[len(FRAME) :], "spark_jobs.checks.Bad", "5 bytes of a schema registry"),
    Planted(as_json, "spark_jobs.checks.Bad", "5 bytes of a schema registry"),
    Planted(lambda row: b"", "spark_jobs.checks.Bad", "5 bytes of a schema registry"),
)


class Source:
    """The records of a topic, and what must be said of those that are bad."""

    def __init__(self, good: Callable[[Row], bytes], faults: Iterable[Planted]) -> None:
        self.records: dict[Place, Sent] = {}
        self.bad: dict[Place, Planted] = {}
        ends: Counter[int] = Counter()
        pending = itertools.cycle(faults)
        for number, row in enumerate(nyc.every(STEP)):
            partition = number % PARTITIONS
            place = (partition, ends[partition])
            ends[partition] += 1
            make = good
            if number % EVERY == EVERY - 1:
                self.bad[place] = next(pending)
                make = self.bad[place].value
            headers = (("row", str(number).encode()), ("empty", None)) if number % 2 else ()
            self.records[place] = Sent(partition, f"{row['carrier']} {row['flight']}".encode(), make(row), headers)

    def good(self) -> list[Sent]:
        return [record for place, record in self.records.items() if place not in self.bad]

    def check_bad(self, bootstrap: str, source: str, topic: str, *, twice: bool = False) -> None:
        """The dead letters are those that were planted, each with all that it was and what is wrong with it."""
        told = Counter()
        for letter in topics.records(bootstrap, topic):
            said = {name: value.decode() for name, value in letter.headers if name.startswith("__connect.errors.")}
            place = (int(said["__connect.errors.partition"]), int(said["__connect.errors.offset"]))
            told[place] += 1
            record, fault = self.records[place], self.bad[place]
            assert (letter.key, letter.value) == (record.key, record.value)
            assert tuple(letter.headers[: -len(said)]) == record.headers
            assert list(said) == [
                "__connect.errors.topic",
                "__connect.errors.partition",
                "__connect.errors.offset",
                "__connect.errors.stage",
                "__connect.errors.exception.class.name",
                "__connect.errors.exception.message",
            ]
            assert said["__connect.errors.topic"] == source
            assert said["__connect.errors.stage"] == "VALUE_CONVERTER"
            assert said["__connect.errors.exception.class.name"] == fault.kind
            assert fault.part in said["__connect.errors.exception.message"]
        assert told.keys() == self.bad.keys()
        if not twice:
            assert max(told.values()) == 1


def received(bootstrap: str, topic: str) -> list[Sent]:
    return [
        Sent(each.partition, each.key, each.value, tuple(each.headers)) for each in topics.records(bootstrap, topic)
    ]


def by_partition(records: list[Sent]) -> dict[int, list[Sent]]:
    """In their order there."""
    found: dict[int, list[Sent]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found


@pytest.fixture(scope="module")
def json_source() -> Source:
    return Source(as_json, JSON_FAULTS)


def test_json_records_come_to_their_topics_with_all_that_they_are(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    json_source: Source,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = kwire_topic_factory(partitions=PARTITIONS)
    good, bad = f"{source}-good", f"{source}-bad"
    send(kwire_broker.bootstrap, source, json_source.records.values())
    # With --committed-only nobody hears of these, good or bad.
    taken_back = [Sent(0, b"aborted", as_json(nyc.every(STEP)[0])), Sent(0, b"aborted", b"{")]
    send_in_transaction(kwire_broker.bootstrap, source, taken_back, commit=False)
    arguments = [source, good, bad, "--schema", HERE / "flight.schema.json", "--formats", "--same-partitions"]
    arguments += ["--committed-only", "--checkpoint", tmp_path, "-b", kwire_broker.bootstrap]
    run(main, *arguments)
    expected = json_source.good()
    counts = f"{len(expected):,} good records to {good}, {len(json_source.bad):,} bad ones to {bad}"
    assert capsys.readouterr().out == f"{source}: {counts}\n"
    assert by_partition(received(kwire_broker.bootstrap, good)) == by_partition(expected)
    json_source.check_bad(kwire_broker.bootstrap, source, bad)
    # Dead letters that are judged again tell of their new place alone.
    run(main, bad, f"{bad}-good", f"{bad}-bad", *arguments[3:-4], "--checkpoint", tmp_path / "again", *arguments[-2:])
    assert received(kwire_broker.bootstrap, f"{bad}-good") == []
    for letter in topics.records(kwire_broker.bootstrap, f"{bad}-bad"):
        names = [name for name, _ in letter.headers]
        assert names.count("__connect.errors.topic") == 1
        assert dict(letter.headers)["__connect.errors.topic"] == bad.encode()


def test_avro_records_come_to_their_topics_and_their_key_chooses_the_partition(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    flown = Source(as_avro, AVRO_FAULTS)
    source = kwire_topic_factory(partitions=PARTITIONS)
    good, bad = f"{source}-good", f"{source}-bad"
    send(kwire_broker.bootstrap, source, flown.records.values())
    deletion = Sent(1, b"UA 1545", None)
    send(kwire_broker.bootstrap, source, [deletion])
    arguments = [source, good, bad, "--schema", HERE / "flight.avsc", "--framed", "--tombstones"]
    run(main, *arguments, "--checkpoint", tmp_path, "-b", kwire_broker.bootstrap)
    got = received(kwire_broker.bootstrap, good)
    expected = [*flown.good(), deletion]
    assert Counter(each._replace(partition=0) for each in got) == Counter(
        each._replace(partition=0) for each in expected
    )
    partition_of = {each.key: each.partition for each in got}
    assert all(partition_of[each.key] == each.partition for each in got)
    assert set(partition_of.values()) == set(range(PARTITIONS))
    flown.check_bad(kwire_broker.bootstrap, source, bad)


def test_broker_and_job_are_killed_and_each_record_has_one_topic(
    spark: SparkSession,
    kwire_broker_factory: BrokerFactory,
    json_source: Source,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker = kwire_broker_factory()
    source, good, bad = "flights", "flights-good", "flights-bad"
    create_topic(broker.bootstrap, source, PARTITIONS, {"retention.ms": -1})
    send(broker.bootstrap, source, json_source.records.values())
    checkpoint = tmp_path / "checkpoint"
    arguments = [source, good, bad, "--schema", HERE / "flight.schema.json", "--formats", "--same-partitions"]
    arguments += ["--checkpoint", checkpoint, "-b", broker.bootstrap]
    arguments += ["--max-offsets-per-trigger", 1000]
    with JobProcess("quality", *arguments, folder=tmp_path, submit=True) as job:
        job.wait_until(lambda: len(batches(checkpoint)) >= 1)
        broker.kill()
        broker.start()
        job.wait_until(lambda: len(batches(checkpoint)) >= 2)
        job.kill()
    broker.kill()
    broker.start()
    partly = len(received(broker.bootstrap, good)) + len(received(broker.bootstrap, bad))
    assert 0 < partly < len(json_source.records)
    run(main, *arguments)
    expected = json_source.good()
    # A batch that was under way came again: what came twice is told by the dead letters' places.
    assert set(received(broker.bootstrap, good)) == set(expected)
    json_source.check_bad(broker.bootstrap, source, bad, twice=True)
    capsys.readouterr()
    run(main, *arguments)
    assert capsys.readouterr().out == f"{source}: 0 good records to {good}, 0 bad ones to {bad}\n"


@pytest.mark.parametrize(
    ("schema", "options", "line"),
    [
        (None, [], "none.json: No such file or directory"),
        ("{", [], "schema.json is not JSON: Expecting property name"),
        ('{"$schema": "https://example.com/mine"}', [], "schema.json: unknown draft 'https://example.com/mine'"),
        ('{"type": "whole"}', [], "schema.json is not a JSON Schema: $.type: 'whole' is not valid"),
        ('{"type": "record"}', ["--language", "avro"], "schema.json is not an Avro schema: "),
        ('{"type": "int"}', ["--language", "avro", "--formats"], "--formats is for JSON Schema"),
    ],
)
def test_a_bad_schema_ends_the_job_in_one_line_before_spark_starts(
    schema: str | None,
    options: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def open_session(*arguments: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(command_line, "open_session", open_session)
    file = tmp_path / ("none.json" if schema is None else "schema.json")
    if schema is not None:
        file.write_text(schema)
    assert line in refused(capsys, "a", "b", "c", "--schema", file, "--checkpoint", tmp_path, *options)


def test_wrong_topics_end_the_job_in_one_line(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wide, narrow = kwire_topic_factory(partitions=2), kwire_topic_factory()
    common = ["--schema", HERE / "flight.avsc", "--checkpoint", tmp_path, "-b", kwire_broker.bootstrap]
    assert "has no topic nowhere" in refused(capsys, "nowhere", "good", "bad", *common)
    assert "must be three topics" in refused(capsys, wide, "good", "good", *common)
    line = refused(capsys, wide, narrow, f"{wide}-bad", *common, "--same-partitions")
    assert f"{narrow} has 1 partitions, {wide} has 2" in line


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line of a run that must end with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        run(main, *arguments)
    assert ended.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]
