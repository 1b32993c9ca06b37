"""All flights of 2013, through a topic into a lake and back into a topic, with crashes on the way."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pandas as pd
import pyarrow.parquet as parquet
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import lake as job
from spark_jobs.delta_log import File, Log
from spark_jobs.lake_files import sole
from spark_jobs.tests.flight_records import Flight, by_partition, flights, publish, published, table
from spark_jobs.tests.jobs import JobProcess, run

# The first test waits for a Spark that is killed, three times over: on a busy machine that takes minutes.
pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]

FOREVER = {"retention.ms": -1}
"""The flights are of 2013."""
TOPIC = "flights-of-2013"
PARTITIONS = 3
BATCH = 60_000
"""Records in a batch, so that there are six."""
BY_MONTH = "month=date_format(timestamp, 'yyyy-MM')"
CARRIER = "flight=from_json(string(value), 'carrier STRING, distance INT')"


@pytest.fixture(scope="module")
def all_flights() -> list[Flight]:
    return flights(slice(None), PARTITIONS)


@pytest.fixture(scope="module")
def written(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    all_flights: list[Flight],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The lake with all flights, whose writer was killed three times."""
    create_topic(kwire_broker.bootstrap, TOPIC, PARTITIONS, FOREVER)
    publish(kwire_broker.bootstrap, TOPIC, all_flights)
    folder = tmp_path_factory.mktemp("lake")
    lake = folder / "lake"
    arguments = ["write", TOPIC, lake, "-b", kwire_broker, "--max-offsets-per-trigger", BATCH]
    arguments += ["--partition", BY_MONTH, "--column", CARRIER]
    log = Log(lake)
    moments = [
        # While Spark writes files.
        lambda: any(lake.glob("_staging/*/*/*.parquet")) or any(lake.glob("_staging/*/_temporary/*/*/*/*/*.parquet")),
        # When files are where they belong, but the log does not name them yet.
        lambda: len(files_in(lake)) > len(log.snapshot().files) > 0,
        # When the log names them, but Spark's checkpoint does not know that the batch is done.
        lambda: log.snapshot().version > max(1, done(lake, TOPIC)),
    ]
    for moment in moments:
        with JobProcess("lake", *arguments, folder=folder) as process:
            process.wait_until(moment)
            process.kill()
        assert batches(lake) < 6
    run(job.main, *arguments)
    return lake


def batches(lake: Path) -> int:
    """How many batches the log has."""
    return Log(lake).snapshot().version


def done(lake: Path, topic: str) -> int:
    """How many batches Spark holds for done."""
    return len(list(lake.glob(f"_checkpoints/{topic}-*/commits/[0-9]*")))


def files_in(lake: Path) -> set[str]:
    """All files there are, whether they count or not."""
    return {path.relative_to(lake).as_posix() for path in lake.glob("*=*/**/*.parquet")}


def read(lake: Path) -> pd.DataFrame:
    """What counts, read without Spark, with the name of the folder as a column."""
    frames = []
    for file in Log(lake).snapshot().files.values():
        frame = parquet.ParquetFile(lake / file.path).read().to_pandas()
        assert len(frame) == file.records
        frames.append(frame.assign(**file.values))
    return pd.concat(frames).sort_values(["topic", "partition", "offset"])


def as_flights(rows: pd.DataFrame) -> list[Flight]:
    times = rows.timestamp.astype("datetime64[ms, UTC]").astype("int64")
    return [
        Flight(partition, key, value, tuple((each["key"], each["value"]) for each in headers or ()), time)
        for partition, key, value, headers, time in zip(
            rows.partition, rows.key, rows.value, rows.headers.map(as_list), times, strict=True
        )
    ]


def as_list(headers: object) -> list:
    return [] if headers is None else list(headers)  # type: ignore[call-overload]


def test_each_flight_is_there_once(written: Path, all_flights: list[Flight]) -> None:
    rows = read(written)
    for _, part in rows.groupby("partition"):
        assert part.offset.tolist() == list(range(len(part)))
    assert by_partition(as_flights(rows)) == by_partition(all_flights)
    # The columns that SQL made, against what pandas makes of the data set.
    frame = table()
    departed = frame[frame.dep_time.notna()]
    assert rows.groupby("month").size().to_dict() == frame.groupby(frame.time_hour.str[:7]).size().to_dict()
    made = pd.json_normalize(rows.flight.dropna().tolist())
    distances = made.groupby("carrier").distance.sum().astype(int).to_dict()
    assert distances == departed.groupby("carrier").distance.sum().to_dict()


def test_compaction_changes_no_row_for_whoever_reads(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(written, lake)
    before, months = read(lake), 13
    totals = (len(before), int(before.offset.sum()))
    # A crash before the log names what it wrote changes nothing.
    with JobProcess("lake", "compact", lake, folder=tmp_path) as process:
        process.wait_until(lambda: any("compact-" in name for name in files_in(lake)))
        process.kill()
    interrupted = Log(lake).snapshot()
    old = job.table(spark, lake)
    seen: list[tuple[int, int]] = []
    stop = threading.Event()
    reader = threading.Thread(target=read_on, args=(spark, lake, stop, seen))
    reader.start()
    try:
        run(job.main, "compact", lake)
    finally:
        stop.set()
        reader.join()
    assert len(seen) > 1
    assert set(seen) == {totals}
    assert sums(old) == totals
    files = Log(lake).snapshot().files
    assert len(files) == months <= len(interrupted.files)
    assert not any(lake.glob("_staging/*"))
    run(job.main, "compact", lake, "--keep", 0)
    # Now even those who only look at folders see what is there.
    assert files_in(lake) == set(files)
    assert sums(spark.read.parquet(str(lake))) == totals
    after = read(lake)
    assert as_flights(after) == as_flights(before)
    assert after.month.tolist() == before.month.tolist()


def read_on(spark: SparkSession, lake: Path, stop: threading.Event, seen: list[tuple[int, int]]) -> None:
    """Reads the lake again and again."""
    while not stop.is_set():
        seen.append(sums(job.table(spark, lake)))


def sums(rows) -> tuple[int, int]:
    (row,) = rows.selectExpr("count(*)", "sum(offset)").collect()
    return row[0], row[1]


def test_files_become_as_large_as_wanted(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    lake, topic, sent = tmp_path / "lake", kwire_topic_factory(configs=FOREVER), flights(slice(0, 18_000), 1)
    publish(kwire_broker.bootstrap, topic, sent)
    words = ["--max-offsets-per-trigger", 2_000, "--partition", "year=year(timestamp)"]
    run(job.main, "write", topic, lake, "-b", kwire_broker, *words)
    sizes = [file.size for file in Log(lake).snapshot().files.values()]
    assert len(sizes) == 9
    target = int(3.5 * max(sizes))
    run(job.main, "compact", lake, "--target-size", target / job.MEGABYTE)
    files = list(Log(lake).snapshot().files.values())
    assert 2 <= len(files) <= 4
    assert max(file.size for file in files) < 1.3 * target
    assert by_partition(as_flights(read(lake))) == by_partition(sent)
    # What would not become fewer is left alone.
    assert job.small_files(Log(lake).snapshot(), target) == []


def test_back_into_a_topic(
    spark: SparkSession,
    written: Path,
    all_flights: list[Flight],
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = kwire_topic_factory.name()
    run(job.main, "replay", written, target, "-b", kwire_broker)
    assert capsys.readouterr().out == "336776 records\n"
    assert by_partition(published(kwire_broker.bootstrap, target)) == by_partition(all_flights)
    # Some of them, to where their keys belong, by spark-submit: functions must reach its workers, too.
    target = kwire_topic_factory(partitions=2, configs=FOREVER)
    words = ["-b", kwire_broker, "--by-key", "--where", "flight.carrier = 'HA'"]
    with JobProcess("lake", "replay", written, target, *words, folder=tmp_path, submit=True) as process:
        assert "342 records" in process.finish()
    got = published(kwire_broker.bootstrap, target)
    expected = [flight for flight in all_flights if flight.value is not None and flight.row["carrier"] == "HA"]
    assert len(expected) == 342
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
    january, more, anew = (flights(slice(start, start + 3_000), 2) for start in (0, 3_000, 6_000))
    publish(kwire_broker.bootstrap, topic, january)
    publish(kwire_broker.bootstrap, other, more)
    write = ["write", topic, lake, "-b", kwire_broker]
    run(job.main, *write)
    run(job.main, "write", other, lake, "-b", kwire_broker)
    # How far the stream is gets lost; the lake has the records, and takes only what is new.
    shutil.rmtree(lake / "_checkpoints")
    publish(kwire_broker.bootstrap, topic, more)
    run(job.main, *write)
    rows = read(lake)
    assert by_partition(as_flights(rows[rows.topic == topic])) == by_partition(january + more)
    assert by_partition(as_flights(rows[rows.topic == other])) == by_partition(more)
    assert sorted(rows.date.unique()) == sorted({flight_date(flight) for flight in january + more})
    # The topic is made anew: its first records are not those that the lake has.
    admin = AdminClient({"bootstrap.servers": kwire_broker.bootstrap})
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(60)
    create_topic(kwire_broker.bootstrap, topic, 2, FOREVER)
    publish(kwire_broker.bootstrap, topic, anew)
    run(job.main, *write)
    rows = read(lake)
    rows = rows[rows.topic == topic]
    assert len(rows) == 9_000
    first, second = rows.topic_id.unique()
    found = {
        tuple(map(str, by_partition(as_flights(rows[rows.topic_id == each])).values())) for each in (first, second)
    }
    assert found == {tuple(map(str, by_partition(each).values())) for each in (january + more, anew)}
    # Which of the three it should replay must be said.
    capsys.readouterr()
    replay = ["replay", lake, kwire_topic_factory.name(), "-b", kwire_broker]
    with pytest.raises(SystemExit, match=r"^1$"):
        run(job.main, *replay)
    (line,) = capsys.readouterr().err.splitlines()
    assert "records of several topics" in line
    assert f"topic_id = '{first}' ({topic})" in line
    run(job.main, *replay, "--where", f"topic = '{other}'")
    assert by_partition(published(kwire_broker.bootstrap, replay[2])) == by_partition(more)


def flight_date(flight: Flight) -> str:
    return pd.Timestamp(flight.timestamp, unit="ms").strftime("%Y-%m-%d")


@pytest.fixture
def small(spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic: str, tmp_path: Path) -> Path:
    """A lake of a few flights, one of them a large record."""
    sent = flights(slice(0, 50), 1)
    sent[7] = sent[7]._replace(value=b"".join(flight.value or b"" for flight in sent))
    publish(kwire_broker.bootstrap, kwire_topic, sent)
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
    publish(kwire_broker.bootstrap, three, flights(slice(0, 30), 3))
    run(job.main, "write", three, tmp_path / "three", *here)
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "photo.jpeg").touch()
    before = Log(small).snapshot().version
    for words, complaint in [
        (["write", "no-such-topic", tmp_path / "new", *here], f"{kwire_broker} has no topic no-such-topic"),
        ([*write, strange, *here], f"{strange} is no lake, and not empty: it has photo.jpeg"),
        ([*write, tmp_path / "new", *here, "--partition", "day=no_such_column"], "UNRESOLVED_COLUMN"),
        ([*write, tmp_path / "new", *here, "--column", "Value=key"], "there is a column Value already"),
        ([*write, tmp_path / "cast", *here, "--column", "number=int(string(value))"], "CAST_INVALID_INPUT"),
        ([*write, tmp_path / "void", *here, "--column", "nothing=null"], "VOID"),
        ([*write, small, *here, "--column", "more=1"], f"{small} has other columns: more is none there, int here"),
        ([*write, small, *here, "--partition", "date=string(date(timestamp))"], "date is date there, string here"),
        (["compact", tmp_path / "new"], f"{tmp_path / 'new'} is no lake"),
        (["replay", strange, "copy", *here], f"{strange} is no lake"),
        (["replay", small, "copy", *here, "--where", "carrier = 'UA'"], "UNRESOLVED_COLUMN"),
        (["replay", small, "copy", *here, "--where", "false"], "there are no such records"),
        (["replay", tmp_path / "three", kwire_topic, *here], f"{kwire_topic} has 1 partitions, the records have 3"),
        (["replay", small, "copy", *here, "--producer", "acks=some"], "acks"),
        (["replay", small, "copy", *here, "--producer", "message.max.bytes=1000"], "Message size too large"),
    ]:
        capsys.readouterr()
        with pytest.raises(SystemExit, match=r"^1$"):
            run(job.main, *words)
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        assert line.startswith(f"lake {words[0]}: ")
        assert complaint in line
    assert Log(small).snapshot().version == before
    with sole(small, f"write-{kwire_topic}"), pytest.raises(SystemExit, match=r"^1$"):
        run(job.main, *write, small, *here)
    assert "another process does this" in capsys.readouterr().err


def test_a_file_that_does_not_hold_what_the_log_says(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A compaction makes sure that it takes nothing away."""
    log = Log(small)
    (file,) = log.snapshot().files.values()
    copy = File(file.path.replace("batch-", "batch-copy-"), file.values, file.size, file.records + 1)
    shutil.copy(small / file.path, small / copy.path)
    log.commit("WRITE", lambda present: [copy.added(new=True)])
    before = set(Log(small).snapshot().files)
    with pytest.raises(SystemExit, match=r"^1$"):
        run(job.main, "compact", small)
    assert "nothing is changed" in capsys.readouterr().err
    assert set(Log(small).snapshot().files) == before
