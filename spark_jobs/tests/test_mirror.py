"""Flights, copied between kwire and Apache Kafka and within one broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.testing.factories import TopicFactory
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic
from spark_jobs import mirror, topics
from spark_jobs.tests.flights import by_partition, flights
from spark_jobs.tests.jobs import JobProcess, batches, run
from spark_jobs.tests.producing import Sent, pass_on, send
from spark_jobs.tests.topics import published

pytestmark = pytest.mark.xdist_group("spark")

FOREVER = {"retention.ms": -1}
"""The flights are of 2013."""
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka(options=SMALL_JVM) as broker:
        yield broker


def copy(broker: BrokerProcess | ApacheKafka, source: str, target: str, folder: Path, *options: object) -> None:
    """One run of the job, in this process."""
    run(mirror.main, source, target, "-b", broker.bootstrap, "--checkpoint", folder, *options)


def test_there_and_back(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    kafka: ApacheKafka,
    tmp_path: Path,
) -> None:
    sent = flights(slice(0, 20_000), partitions=3)
    assert {None} <= {record.key for record in sent} & {record.value for record in sent}
    source = kwire_topic_factory(partitions=3, configs=FOREVER)
    back = kwire_topic_factory.name()
    send(kwire_broker.bootstrap, source, sent)
    copy(kwire_broker, source, "flights", tmp_path / "there", "--to", kafka.bootstrap)
    assert by_partition(published(kafka.bootstrap, "flights"), times=False) == by_partition(sent, times=False)
    copy(kafka, "flights", back, tmp_path / "back", "--to", kwire_broker.bootstrap)
    assert by_partition(published(kwire_broker.bootstrap, back), times=False) == by_partition(sent, times=False)
    # The checkpoint knows that all is done; a record more is all that the next run copies.
    more = flights(slice(20_000, 20_001), partitions=3)
    send(kwire_broker.bootstrap, source, more)
    copy(kwire_broker, source, "flights", tmp_path / "there", "--to", kafka.bootstrap)
    assert by_partition(published(kafka.bootstrap, "flights"), times=False) == by_partition(sent + more, times=False)


def test_a_checkpoint_is_of_two_clusters_whatever_their_addresses(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sent = flights(slice(0, 20), partitions=1)
    send(kwire_broker.bootstrap, kwire_topic, sent[:10])
    with BrokerProcess() as there, BrokerProcess() as elsewhere:
        copy(kwire_broker, kwire_topic, "copy", tmp_path, "--to", there.bootstrap)
        send(kwire_broker.bootstrap, kwire_topic, sent[10:])
        for options in (["--to", elsewhere.bootstrap], []):
            with pytest.raises(SystemExit, match=r"^1$"):
                copy(kwire_broker, kwire_topic, "copy", tmp_path, *options)
            assert "is for another target cluster, " in one_line(capsys)
        assert published(elsewhere.bootstrap, "copy") == []
        copy(kwire_broker, kwire_topic, "copy", tmp_path, "--to", f"{there.bootstrap},{there.bootstrap}")
        assert by_partition(published(there.bootstrap, "copy"), times=False) == by_partition(sent, times=False)
        create_topic(elsewhere.bootstrap, kwire_topic, 1, FOREVER)
        with pytest.raises(SystemExit, match=r"^1$"):
            copy(elsewhere, kwire_topic, "copy", tmp_path, "--to", there.bootstrap)
        assert "is for another cluster, " in one_line(capsys)


def test_sql_chooses_and_changes(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    sent = flights(slice(0, 10_000), partitions=3)
    source, target = kwire_topic_factory(partitions=3, configs=FOREVER), kwire_topic_factory(partitions=2)
    send(kwire_broker.bootstrap, source, sent)
    far = "get_json_object(string(value), '$.distance') > 2000"
    words = ["--where", far, "--key", "get_json_object(string(value), '$.dest')", "--value", "upper(string(value))"]
    words += ["--header", "was=string(key)", "--header", "at=concat_ws(':', topic, partition, offset)", "--by-key"]
    words += ["--header", "miles=int(get_json_object(string(value), '$.distance'))"]
    copy(kwire_broker, source, target, tmp_path, *words)
    offsets = {partition: iter(range(len(sent))) for partition in range(3)}
    expected = []
    for record in sent:
        offset = next(offsets[record.partition])
        if record.value is not None and record.row["distance"] > 2000:
            place, miles = f"{source}:{record.partition}:{offset}", f"{record.row['distance']}"
            more = (("was", record.key), ("at", place.encode()), ("miles", miles.encode()))
            expected.append((record.row["dest"].encode(), record.value.upper(), record.headers + more))
    got = published(kwire_broker.bootstrap, target)
    assert len(expected) > 1000
    assert sorted((record.key, record.value, str(record.headers)) for record in got) == sorted(
        (key, value, str(headers)) for key, value, headers in expected
    )
    places: dict[bytes | None, set[int]] = {}
    for record in got:
        places.setdefault(record.key, set()).add(record.partition)
    assert {len(place) for place in places.values()} == {1}
    assert {record.partition for record in got} == {0, 1}


def test_without_what_was_aborted(
    spark: SparkSession, kwire_broker: BrokerProcess, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    sent = flights(slice(0, 6_000), partitions=2)
    source = kwire_topic_factory(partitions=2, configs=FOREVER)
    producer = Producer({"bootstrap.servers": kwire_broker.bootstrap, "transactional.id": source, "linger.ms": 20})
    producer.init_transactions()
    kept: list[Sent] = []
    for number, start in enumerate(range(0, 6_000, 1_000)):
        part = sent[start : start + 1_000]
        producer.begin_transaction()
        pass_on(producer, source, part)
        producer.flush()
        if number % 3 == 1:
            producer.abort_transaction()
        elif number < 5:
            producer.commit_transaction()
            kept += part
    # The last one is still open. Batches end within what was aborted, and at the markers between transactions.
    words = ["--max-offsets-per-trigger", 700]
    committed, all_of_it = kwire_topic_factory.name(), kwire_topic_factory.name()
    copy(kwire_broker, source, committed, tmp_path / "committed", "--committed-only", *words)
    assert by_partition(published(kwire_broker.bootstrap, committed), times=False) == by_partition(kept, times=False)
    producer.commit_transaction()
    copy(kwire_broker, source, committed, tmp_path / "committed", "--committed-only", *words)
    kept += sent[5_000:]
    assert by_partition(published(kwire_broker.bootstrap, committed), times=False) == by_partition(kept, times=False)
    copy(kwire_broker, source, all_of_it, tmp_path / "all")
    assert by_partition(published(kwire_broker.bootstrap, all_of_it), times=False) == by_partition(sent, times=False)


def test_broker_and_driver_killed_on_the_way(spark: SparkSession, tmp_path: Path) -> None:
    sent = flights(slice(0, 30_000), partitions=3)
    sent = [record._replace(headers=(("number", str(number).encode()),)) for number, record in enumerate(sent)]
    source, target = "flights", "copy"
    state = tmp_path / "state"
    with BrokerProcess() as broker:
        create_topic(broker.bootstrap, source, 3, FOREVER)
        send(broker.bootstrap, source, sent)
        arguments = [source, target, "-b", broker.bootstrap, "--checkpoint", state, "--max-offsets-per-trigger", 1_500]
        with JobProcess("mirror", *arguments, folder=tmp_path, submit=True) as job:
            job.wait_until(lambda: len(batches(state)) >= 3)
            broker.kill()
            broker.start()
            since = len(batches(state))
            job.wait_until(lambda: len(batches(state)) >= since + 3)
            job.kill()
        broker.kill()
        broker.start()
        assert 0 < len(published(broker.bootstrap, target)) < len(sent)
        copy(broker, source, target, state, "--max-offsets-per-trigger", 1_500)
        got = by_partition(published(broker.bootstrap, target), times=False)
    # What was under way came again, as a whole: without what comes again, each partition is what was sent.
    assert {number: list(dict.fromkeys(records)) for number, records in got.items()} == by_partition(sent, times=False)
    assert sum(map(len, got.values())) - len(sent) <= 1_500 + 3


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    """All that the job said."""
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--where", "carrier = 'UA'"], "UNRESOLVED_COLUMN"),
        (["--where", "get_json_object(value"], "PARSE_SYNTAX_ERROR"),
        (["--where", "string(value)"], "STRING"),
        (["--value", "no_such_function(value)"], "UNRESOLVED_ROUTINE"),
        (["--key", "string(count(*))"], "MISSING_GROUP_BY"),
    ],
)
def test_bad_sql_is_one_line(
    options: list[str],
    complaint: str,
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    send(kwire_broker.bootstrap, kwire_topic, flights(slice(0, 10), partitions=1))
    with pytest.raises(SystemExit, match=r"^1$"):
        copy(kwire_broker, kwire_topic, kwire_topic_factory.name(), tmp_path, *options)
    line = one_line(capsys)
    assert line.startswith("mirror: ")
    assert complaint in line


def test_what_is_not_there_is_one_line(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three, one = kwire_topic_factory(partitions=3), kwire_topic_factory()
    here = kwire_broker.bootstrap
    nowhere = "127.0.0.1:1"
    monkeypatch.setattr(topics, "WAIT_MS", 5_000)
    for source, target, options, complaint in [
        ("no-such-topic", "copy", [], f"{here} has no topic no-such-topic"),
        (three, three, [], f"{three} would be copied into itself"),
        (three, three, ["--to", here.replace("127.0.0.1", "localhost")], f"{three} would be copied into itself"),
        (three, one, [], f"{one} has 1 partitions, {three} has 3: add some, or use --by-key"),
        (three, "copy", ["--to", nowhere], f"no broker answers at {nowhere}"),
        (three, "copy", ["-b", nowhere], f"no broker answers at {nowhere}"),
        (three, "copy", ["--to", "no.such.host.invalid:9092"], "No resolvable bootstrap urls given"),
        (three, "not a name", [], "InvalidTopicException"),
        (three, "copy", ["--kafka", "security.protocol=NONE"], "security.protocol"),
    ]:
        with pytest.raises(SystemExit, match=r"^1$"):
            copy(kwire_broker, source, target, tmp_path, *options)
        line = one_line(capsys)
        assert line.startswith("mirror: ")
        assert complaint in line


def test_what_is_refused_amid_a_batch_is_one_line(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = kwire_topic_factory(configs=FOREVER), kwire_topic_factory(configs={"max.message.bytes": 20_000})
    sent = flights(slice(0, 100), partitions=1)
    sent[50] = sent[50]._replace(value=b"".join(flight.value or b"" for flight in sent))
    send(kwire_broker.bootstrap, source, sent)
    with pytest.raises(SystemExit, match=r"^1$"):
        copy(kwire_broker, source, target, tmp_path)
    assert "max.message.bytes" in one_line(capsys)
    with pytest.raises(SystemExit, match=r"^1$"):
        copy(kwire_broker, source, target, tmp_path, "--kafka", "acks=7")
    assert "Invalid value 7 for configuration acks" in one_line(capsys)
    with pytest.raises(SystemExit, match=r"^1$"):
        copy(kwire_broker, source, target, tmp_path, "--where", "bigint(string(value)) > 1")
    assert one_line(capsys).startswith("mirror: [CAST_INVALID_INPUT] ")


def test_records_that_went_before_they_were_read(
    spark: SparkSession,
    kwire_broker: BrokerProcess,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = kwire_topic_factory(configs=FOREVER), kwire_topic_factory()
    first, lost, last = (flights(slice(start, start + 100), partitions=1) for start in (0, 100, 200))
    send(kwire_broker.bootstrap, source, first)
    copy(kwire_broker, source, target, tmp_path)
    send(kwire_broker.bootstrap, source, lost + last)
    delete_records(kwire_broker.bootstrap, source, 200)
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^1$"):
        copy(kwire_broker, source, target, tmp_path)
    assert "--allow-data-loss" in one_line(capsys)
    copy(kwire_broker, source, target, tmp_path, "--allow-data-loss")
    assert by_partition(published(kwire_broker.bootstrap, target), times=False) == by_partition(
        first + last, times=False
    )


def delete_records(bootstrap: str, topic: str, offset: int) -> None:
    """Those of partition 0 before this offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        done.result(60)


def test_a_wrong_topic_in_a_process_of_its_own(kwire_broker: BrokerProcess, tmp_path: Path) -> None:
    with JobProcess("mirror", "none", "copy", "-b", kwire_broker, "--checkpoint", "state", folder=tmp_path) as job:
        said = job.finish(code=1)
    assert said.splitlines()[-1] == f"mirror: {kwire_broker} has no topic none"
    assert "Traceback" not in said
    assert "\tat " not in said


def test_a_topic_that_was_made_anew_is_not_gone_on_with(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BrokerProcess() as broker:
        create_topic(broker.bootstrap, "source", 1, FOREVER)
        send(broker.bootstrap, "source", flights(slice(0, 5), partitions=1))
        copy(broker, "source", "copy", tmp_path)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics(["source"])["source"].result(30)
        create_topic(broker.bootstrap, "source", 1, FOREVER)
        send(broker.bootstrap, "source", flights(slice(5, 14), partitions=1))
        capsys.readouterr()
        for target, complaint in (("copy", "source was made anew since"), ("other", "source was made anew since")):
            with pytest.raises(SystemExit, match=r"^1$"):
                copy(broker, "source", target, tmp_path)
            assert complaint in one_line(capsys)
        with pytest.raises(click.UsageError, match="--to-kafka goes with --to"):
            copy(broker, "source", "copy", tmp_path, "--to-kafka", "acks=1")
