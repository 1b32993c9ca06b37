"""Flights of all months, through a topic into a lake and back into a topic, with crashes on the way.

The lake is read without Spark, by delta-rs and Arrow.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from deltalake.table import TableFeatures
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import lake as job
from spark_jobs.lake_table import is_lake, rows, sole
from spark_jobs.tests.flights import by_partition, flights, table
from spark_jobs.tests.jobs import JobProcess, run, undone
from spark_jobs.tests.producing import Sent, send
from spark_jobs.tests.topics import published

# The first test waits for a Spark that is killed, twice: on a busy machine that takes minutes.
pytestmark = pytest.mark.xdist_group("spark-2")

FOREVER = {"retention.ms": -1}
"""The flights are of 2013."""
TOPIC = "flights-of-2013"
PARTITIONS = 3
SOME = slice(None, None, 6)
"""Of the data set: some of each day."""
BATCH = 10_000
"""Most records in a batch."""
BATCHES = 6
MONTHS = 13
"""The last flight left in 2014, by UTC."""
BY_MONTH = "month=date_format(timestamp, 'yyyy-MM')"
CARRIER = "flight=from_json(string(value), 'carrier STRING, distance INT')"


@pytest.fixture(scope="module")
def some_flights() -> list[Sent]:
    """In no order, so that each batch has flights of each month."""
    found = flights(SOME, PARTITIONS)
    random.Random(2013).shuffle(found)
    return found


@pytest.fixture(scope="module")
def written(spark: SparkSession, some_flights: list[Sent], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake with these flights, whose writer was killed twice, and the broker as often."""
    folder = tmp_path_factory.mktemp("lake")
    lake = folder / "lake"
    with BrokerProcess() as broker:
        create_topic(broker.bootstrap, TOPIC, PARTITIONS, FOREVER)
        send(broker.bootstrap, TOPIC, some_flights)
        arguments = ["write", TOPIC, lake, "-b", broker, "--max-offsets-per-trigger", BATCH]
        arguments += ["--partition", BY_MONTH, "--column", CARRIER]
        with JobProcess("lake", *arguments, folder=folder, submit=True) as process:
            process.wait_until(lambda: batches(lake) >= 1)
            broker.kill()
            broker.start()
            process.wait_until(lambda: batches(lake) >= 2)
            process.kill()
        broker.kill()
        broker.start()
        assert batches(lake) < BATCHES
        # The log names the files of a batch, but the stream does not know that the batch is done.
        (checkpoint,) = lake.glob("_checkpoints/*")
        undone(checkpoint)
        run(job.main, *arguments)
        # Files are where they belong, but the log does not name them.
        undone(checkpoint)
        max(lake.glob("_delta_log/*.json")).unlink()
        run(job.main, *arguments)
    return lake


def batches(lake: Path) -> int:
    """How many batches the log has, whose first version has none."""
    return max(0, len(list(lake.glob("_delta_log/*.json"))) - 1)


def files_in(lake: Path) -> set[str]:
    """All files there are, whether they count or not."""
    return {str(path) for path in lake.glob("*=*/**/*.parquet")}


def read(lake: Path, version: int | None = None) -> pd.DataFrame:
    frame = DeltaTable(lake, version=version).to_pyarrow_table().to_pandas()
    return frame.sort_values(["topic", "topic_id", "partition", "offset"])


def as_flights(frame: pd.DataFrame) -> list[Sent]:
    times = frame.timestamp.astype("datetime64[ms, UTC]").astype("int64")
    return [
        Sent(partition, key, value, tuple((each["key"], each["value"]) for each in headers or ()), time)
        for partition, key, value, headers, time in zip(
            frame.partition, frame.key, frame.value, frame.headers.map(as_list), times, strict=True
        )
    ]


def as_list(headers: object) -> list:
    return [] if headers is None else list(headers)  # type: ignore[call-overload]


def complete(frame: pd.DataFrame) -> bool:
    """Whether each partition has all its records up to some offset, once."""
    return all(part.offset.tolist() == list(range(len(part))) for _, part in frame.groupby("partition"))


def test_each_flight_is_there_once(written: Path, some_flights: list[Sent]) -> None:
    frame = read(written)
    assert complete(frame)
    assert by_partition(as_flights(frame)) == by_partition(some_flights)
    # At no time was it otherwise: each version has whole batches.
    sizes = []
    for version in range(DeltaTable(written).version() + 1):
        then = read(written, version)
        assert complete(then)
        sizes.append(len(then))
    assert sizes[0] == 0
    assert len(sizes) == BATCHES + 1
    assert max(after - before for before, after in pairwise(sizes)) <= BATCH
    # The columns that SQL made, against what pandas makes of the data set.
    source = table().iloc[SOME]
    departed = source[source.dep_time.notna()]
    assert frame.groupby("month").size().to_dict() == source.groupby(source.time_hour.str[:7]).size().to_dict()
    made = pd.json_normalize(frame.flight.dropna().tolist())
    distances = made.groupby("carrier").distance.sum().astype(int).to_dict()
    assert distances == departed.groupby("carrier").distance.sum().to_dict()


def test_compaction_changes_no_row_for_whoever_reads(
    spark: SparkSession, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(written, lake)
    old_files = set(DeltaTable(lake).file_uris())
    crashed = files_in(lake) - old_files
    assert crashed
    before = read(lake)
    # Killed before the log names what it wrote, it changes nothing.
    with JobProcess("lake", "compact", lake, folder=tmp_path, spark=None) as process:
        process.wait_until(lambda: any(lake.glob("*=*/part-*.parquet")))
        process.kill()
    assert set(DeltaTable(lake).file_uris()) == old_files
    of_spark = rows(spark, DeltaTable(lake))
    target = 3 * max(os.path.getsize(file) for file in old_files)
    compacted = threading.Event()
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read_on, lake, compacted)
        try:
            run(job.main, "compact", lake, "--target-size", target / job.MEGABYTE)
            larger = set(DeltaTable(lake).file_uris())
            run(job.main, "compact", lake)
        finally:
            compacted.set()
        seen = reading.result()
    totals = (len(before), int(before.offset.sum()))
    assert len(seen) > 1
    assert set(seen) == {totals}
    assert MONTHS < len(larger) < len(old_files)
    assert max(os.path.getsize(file) for file in larger) < 1.5 * target
    files = set(DeltaTable(lake).file_uris())
    assert capsys.readouterr().out == (
        f"{len(old_files - larger)} files became {len(larger - old_files)}\n"
        f"{len(larger - files)} files became {len(files - larger)}\n"
    )
    assert len(files) == MONTHS
    assert old_files <= files_in(lake)
    assert tuple(of_spark.selectExpr("count(*)", "sum(offset)").collect()[0]) == totals
    # What a crash left may be what a writer is about to name, until it is a day old; what was replaced may not.
    run(job.main, "compact", lake, "--keep", 0)
    assert not ((old_files | larger) - files) & files_in(lake)
    assert crashed < files_in(lake) - files
    for file in files_in(lake):
        os.utime(file, (0, 0))
    run(job.main, "compact", lake, "--keep", 0)
    # Now even those who only look at folders see what is there.
    assert files_in(lake) == files
    assert tuple(spark.read.parquet(str(lake)).selectExpr("count(*)", "sum(offset)").collect()[0]) == totals
    after = read(lake)
    assert as_flights(after) == as_flights(before)
    assert after.month.tolist() == before.month.tolist()
    assert after.flight.tolist() == before.flight.tolist()


def read_on(lake: Path, stop: threading.Event) -> list[tuple[int, int]]:
    """Reads the lake again and again; returns how many records there were, and the sums of their offsets."""
    seen = []
    while not stop.is_set():
        offsets = DeltaTable(lake).to_pyarrow_table(columns=["offset"])["offset"].to_pylist()
        seen.append((len(offsets), sum(offsets)))
    return seen


def test_back_into_a_topic(
    spark: SparkSession,
    written: Path,
    some_flights: list[Sent],
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = kwire_topic_factory.name()
    run(job.main, "replay", written, target, "-b", kwire_broker)
    assert capsys.readouterr().out == f"{len(some_flights)} records\n"
    assert by_partition(published(kwire_broker.bootstrap, target)) == by_partition(some_flights)
    # Some of them, to where their keys belong.
    expected = [flight for flight in some_flights if flight.value is not None and flight.row["carrier"] == "HA"]
    assert len(expected) > 20
    target = kwire_topic_factory(partitions=2, configs=FOREVER)
    words = ["-b", kwire_broker, "--by-key", "--where", "flight.carrier = 'HA'"]
    run(job.main, "replay", written, target, *words)
    assert capsys.readouterr().out == f"{len(expected)} records\n"
    got = published(kwire_broker.bootstrap, target)
    assert sorted(str(flight[1:]) for flight in got) == sorted(str(flight[1:]) for flight in expected)
    places = {(flight.key, flight.partition) for flight in got}
    assert len(places) == len({key for key, _ in places})


def test_the_lake_knows_by_itself_what_it_has(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    tmp_path: Path,
    kwire_topic_factory: TopicFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lake = tmp_path / "lake"
    topic, other = (kwire_topic_factory(partitions=2, configs=FOREVER) for _ in range(2))
    january, more, anew = (flights(slice(start, start + 1_000), 2) for start in (0, 1_000, 2_000))
    send(kwire_broker.bootstrap, topic, january)
    send(kwire_broker.bootstrap, other, more)
    write = ["write", topic, lake, "-b", kwire_broker]
    # Small batches, which become larger files at the same time.
    written = threading.Event()
    with ThreadPoolExecutor() as pool:
        compacted = pool.submit(compact_on, lake, written)
        try:
            run(job.main, *write, "--max-offsets-per-trigger", 200)
        finally:
            written.set()
        assert compacted.result() > 1
    run(job.main, "write", other, lake, "-b", kwire_broker)
    # How far the stream is gets lost, and the log is told anew; the lake has the records, and takes only what is new.
    shutil.rmtree(lake / "_checkpoints")
    DeltaTable(lake).create_checkpoint()
    for file in sorted((lake / "_delta_log").glob("*.json"))[:-1]:
        file.unlink()
    send(kwire_broker.bootstrap, topic, more)
    run(job.main, *write)
    frame = read(lake)
    assert by_partition(as_flights(frame[frame.topic == topic])) == by_partition(january + more)
    assert by_partition(as_flights(frame[frame.topic == other])) == by_partition(more)
    assert sorted(map(str, frame.date.unique())) == sorted({flight_date(flight) for flight in january + more})
    # The topic is made anew: its first records are not those that the lake has.
    admin = AdminClient({"bootstrap.servers": kwire_broker.bootstrap})
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(60)
    create_topic(kwire_broker.bootstrap, topic, 2, FOREVER)
    send(kwire_broker.bootstrap, topic, anew)
    run(job.main, *write)
    frame = read(lake)
    frame = frame[frame.topic == topic]
    assert len(frame) == 3_000
    found = {identity: as_flights(part) for identity, part in frame.groupby("topic_id")}
    assert sorted(map(len, found.values())) == [1_000, 2_000]
    for records in found.values():
        assert by_partition(records) == by_partition(anew if len(records) == 1_000 else january + more)
    # Which of the three it should replay must be said.
    capsys.readouterr()
    target = kwire_topic_factory.name()
    replay = ["replay", lake, target, "-b", kwire_broker]
    with pytest.raises(SystemExit, match=r"^1$"):
        run(job.main, *replay)
    (line,) = capsys.readouterr().err.splitlines()
    assert "records of several topics" in line
    assert all(f"topic_id = '{identity}' ({topic})" in line for identity in found)
    run(job.main, *replay, "--where", f"topic = '{other}'")
    assert by_partition(published(kwire_broker.bootstrap, target)) == by_partition(more)


def compact_on(lake: Path, stop: threading.Event) -> int:
    """Compacts the lake again and again; returns how often."""
    times = 0
    while not stop.is_set():
        if is_lake(lake):
            run(job.main, "compact", lake, "--keep", 0)
            times += 1
        stop.wait(0.1)
    return times


def flight_date(flight: Sent) -> str:
    return pd.Timestamp(flight.timestamp, unit="ms").strftime("%Y-%m-%d")


def test_folders_of_any_value(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path
) -> None:
    lake = tmp_path / "a lake at 5% [ä]"
    names = ["a b", "c:d", "50%", "x/y=z", "é", "{1}", "[a-b]*?", None]
    sent = flights(slice(0, 4 * len(names)), 1)
    send(kwire_broker.bootstrap, kwire_topic, sent)
    listed = ", ".join("null" if name is None else f"'{name}'" for name in names)
    name = f"name=element_at(array({listed}), int(offset % {len(names)}) + 1)"
    words = ["-b", kwire_broker, "--partition", name, "--partition", "half=date_trunc('HOUR', timestamp)"]
    # In a session whose hours begin at other times than those of UTC.
    words += ["--spark", "spark.sql.session.timeZone=Asia/Kolkata"]
    try:
        run(job.main, "write", kwire_topic, lake, *words, "--max-offsets-per-trigger", 2 * len(names))
        expected = [names[number % len(names)] for number in range(len(sent))]
        for _ in range(2):
            frame = read(lake)
            assert [name if isinstance(name, str) else None for name in frame.name] == expected
            assert frame.half.tolist() == [
                pd.Timestamp(flight.timestamp, unit="ms", tz="Asia/Kolkata").floor("h") for flight in sent
            ]
            found = rows(spark, DeltaTable(lake)).orderBy("offset")
            right = found.selectExpr(
                "name", "half = date_trunc('HOUR', timestamp)", "key", "value", "headers"
            ).collect()
            assert [(*row[:-1], tuple(map(tuple, row.headers or ()))) for row in right] == [
                (name, True, flight.key, flight.value, flight.headers)
                for name, flight in zip(expected, sent, strict=True)
            ]
            run(job.main, "compact", lake, "--keep", 0)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture
def small(spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path) -> Path:
    """A lake of a few flights, one of them a large record."""
    sent = flights(slice(0, 50), 1)
    sent[7] = sent[7]._replace(value=b"".join(flight.value or b"" for flight in sent))
    send(kwire_broker.bootstrap, kwire_topic, sent)
    run(job.main, "write", kwire_topic, tmp_path / "small", "-b", kwire_broker)
    return tmp_path / "small"


def test_what_a_user_can_put_right_is_one_line(
    small: Path,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = ["-b", kwire_broker]
    write = ["write", kwire_topic]
    three = kwire_topic_factory(partitions=3, configs=FOREVER)
    send(kwire_broker.bootstrap, three, flights(slice(0, 30), 3))
    run(job.main, "write", three, tmp_path / "three", *here)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "photo.jpeg").touch()
    newer = tmp_path / "newer"
    shutil.copytree(small, newer)
    DeltaTable(newer).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    emptied = tmp_path / "emptied"
    shutil.copytree(small, emptied)
    for path in emptied.iterdir():
        if path.name != "_checkpoints":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    new = tmp_path / "new"
    before = DeltaTable(small).version()
    for words, complaint in [
        (["write", "no-such-topic", new, *here], f"{kwire_broker} has no topic no-such-topic"),
        ([*write, strange, *here], f"{strange} is no lake, and not empty: it has photo.jpeg"),
        ([*write, emptied, *here], f"{emptied} is a lake no more"),
        ([*write, new, *here, "--partition", "day=no_such_column"], "UNRESOLVED_COLUMN"),
        ([*write, new, *here, "--column", "Value=key"], "there is a column Value already"),
        ([*write, new, *here, "--column", "number=int(string(value))"], "CAST_INVALID_INPUT"),
        ([*write, new, *here, "--column", "nothing=null"], "VOID"),
        ([*write, small, *here, "--column", "more=1"], f"{small} has other columns: more is none there, int here"),
        ([*write, small, *here, "--partition", "date=string(date(timestamp))"], "date is date there, string here"),
        (["compact", new], f"{new} is no lake"),
        (["replay", strange, "copy", *here], f"{strange} is no lake"),
        (["replay", newer, "copy", *here], "changed by a Delta that this job does not understand"),
        (["replay", small, "copy", *here, "--where", "carrier = 'UA'"], "UNRESOLVED_COLUMN"),
        (["replay", small, "copy", *here, "--where", "false"], "there are no such records"),
        (["replay", tmp_path / "three", kwire_topic, *here], f"{kwire_topic} has 1 partitions, the records have 3"),
        (["replay", small, "copy", *here, "--producer", "acks=some"], "acks"),
        (["replay", small, "copy", *here, "--producer", "message.max.bytes=1000"], "Message size too large"),
    ]:
        fails(words, complaint, capsys)
    assert not is_lake(new)
    assert DeltaTable(small).version() == before
    with sole(small, f"write-{kwire_topic}"), sole(small, "compact"):
        fails([*write, small, *here], "another process does this", capsys)
        fails(["compact", small], "another process does this", capsys)


def fails(words: list[object], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^1$"):
        run(job.main, *words)
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith(f"lake {words[0]}: ")
    assert complaint in line


def test_a_topic_that_is_made_anew_while_it_is_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    with BrokerProcess() as broker:
        create_topic(broker.bootstrap, TOPIC, 1, FOREVER)
        send(broker.bootstrap, TOPIC, flights(slice(0, 5), 1))
        with JobProcess("lake", "write", TOPIC, lake, "-b", broker, "--follow", folder=tmp_path) as process:
            process.wait_until(lambda: batches(lake) > 0)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.delete_topics([TOPIC])[TOPIC].result(30)
            create_topic(broker.bootstrap, TOPIC, 1, FOREVER)
            send(broker.bootstrap, TOPIC, flights(slice(5, 14), 1))
            said = process.finish(1)
        assert said.splitlines()[-1].startswith("lake write: "), said[-5000:]
        run(job.main, "write", TOPIC, lake, "-b", broker)
    frame = read(lake)
    assert all(complete(records) for _, records in frame.groupby("topic_id"))
    assert sorted(frame.groupby("topic_id").size()) == [5, 9]
