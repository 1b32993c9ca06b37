"""`kwire import` of what a real Apache Kafka left, and what kwire makes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from compat_tests.adoption import filling
from compat_tests.adoption.command import kwire
from compat_tests.adoption.conftest import Left
from compat_tests.adoption.filling import GROUPS, RETURNED, TOPICS, Steps
from compat_tests.java_tools.tools import JavaTools
from compat_tests.oracle.asking import TOPIC
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("adoption")

PATIENCE = 30
"""Seconds for a compaction."""


def everything_in(dirs: list[Path]) -> dict[str, tuple[int, str]]:
    """Time and content of every file."""
    return {
        str(path): (path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
        for each in dirs
        for path in each.rglob("*")
        if path.is_file()
    }


@dataclass
class Imported:
    left: Left
    report: dict
    broker: BrokerProcess


@pytest.fixture(scope="module", params=["killed", "stopped"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imported]:
    """A kwire that serves what was imported."""
    left: Left = request.getfixturevalue(request.param)
    target = tmp_path_factory.mktemp("kwire") / "data"
    before = everything_in(left.dirs)
    report = json.loads(kwire("import", *left.dirs, "--data-dir", target, "--format", "json"))
    assert everything_in(left.dirs) == before, "the source was touched"
    with BrokerProcess({"log.cleaner.backoff.ms": 100}, data_dir=target) as broker:
        yield Imported(left, report, broker)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_nothing_is_wrong_with_what_apache_kafka_left(request: pytest.FixtureRequest, how: str) -> None:
    assert " 0 faults, " in kwire("log", "verify", "--deep", *request.getfixturevalue(how).dirs)


def test_the_report(imported: Imported) -> None:
    report, left = imported.report, imported.left
    assert report["stopped_cleanly"] == left.clean
    assert {topic["name"]: topic["partitions"] for topic in report["topics"]} == {
        **{name: count for name, (count, _) in TOPICS.items()},
        **RETURNED,
        "grown": 3,
        "__consumer_offsets": 50,
        "__transaction_state": 50,
    }
    said = "\n".join(report["left_out"])
    for words in ("1 ACLs, of User:alice", "SCRAM credentials of alice", "1 quotas, of client-id spark"):
        assert words in said
    assert report["features"] == {"group.version": 1, "transaction.version": 2}


def test_topics_have_their_ids_and_configs(imported: Imported) -> None:
    broker = imported.broker
    found = filling.ask(broker, MetadataRequest(topics=None)).topics
    assert {topic.name: uuids.to_text(topic.topic_id) for topic in found} == imported.left.topic_ids
    for topic, (_, configs) in TOPICS.items():
        expected = {**configs, **({"max.message.bytes": "2000000"} if topic == "moves" else {})}
        assert filling.topic_configs(broker.bootstrap, topic) == expected


def test_every_record_is_there(imported: Imported) -> None:
    bootstrap, left = imported.broker.bootstrap, imported.left
    assert filling.contents(bootstrap, "read_committed") == left.committed
    assert filling.contents(bootstrap, "read_uncommitted") == left.uncommitted
    assert left.committed != left.uncommitted


def test_groups_go_on_where_they_were(imported: Imported) -> None:
    bootstrap, left = imported.broker.bootstrap, imported.left
    assert {group: filling.committed(bootstrap, group) for group in GROUPS} == left.offsets
    after = filling.read_in_groups(bootstrap, 7)
    for group in GROUPS:
        assert sum(after[group].values()) > sum(left.offsets[group].values())


def test_a_producer_goes_on_and_what_it_repeats_is_known(imported: Imported) -> None:
    broker, steps, sent = imported.broker, imported.left.steps, imported.left.steps_sent
    last = 2 * (sent - 1)
    assert steps.send(broker, last) == (0, last)
    assert steps.send(broker, last + 4)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert steps.send(broker, last + 2) == (0, last + 2)
    assert Steps(broker).id >= imported.report["next_producer_id"] > steps.id


def test_transactions_go_on(imported: Imported) -> None:
    """The one that was open is aborted by its producer's next instance."""
    bootstrap = imported.broker.bootstrap
    before = [record[3] for record in imported.left.committed["moves", 0]]
    filling.write_transactions(bootstrap, 1000).abort_transaction(30)
    after = [record[3] for record in filling.contents(bootstrap)["moves", 0]]
    assert after == [*before, b"move 1000.0", b"move 1000.1", b"move 1000.2"]


def test_new_records_are_of_a_new_leader_epoch(imported: Imported) -> None:
    """Each partition's epochs ascend from Apache Kafka's to kwire's own."""
    filling.write_records(imported.broker.bootstrap, 5000)
    theirs = leader_epochs(*(each / "orders-1" for each in imported.left.dirs))
    all_of_them = leader_epochs(imported.broker.data_dir / "orders-1")
    assert all_of_them == sorted(all_of_them)
    assert all_of_them[: len(theirs)] == theirs
    assert min(all_of_them[len(theirs) :]) > max(theirs)


def leader_epochs(*folders: Path) -> list[int]:
    """Of each batch, in the one of the folders that is there."""
    files = [path for folder in folders for path in sorted(folder.glob("*.log"))]
    lines = map(json.loads, kwire("log", "dump", "--format", "json", *files).splitlines())
    return [line["leader_epoch"] for line in lines if "batch" in line]


def test_compaction_goes_on(imported: Imported) -> None:
    """What Apache Kafka wrote is compacted with what came later: the last value of each key stays, at its offset."""
    broker = imported.broker
    before = filling.contents(broker.bootstrap, topics=["prices"])
    for key, value in (("min.cleanable.dirty.ratio", "0.01"), ("segment.ms", "100")):
        filling.alter_config(broker, TOPIC, "prices", key, value)
    last = {key: {record[2]: record for record in records} for key, records in before.items()}
    deadline = time.monotonic() + PATIENCE
    while True:
        with filling.flushed({"bootstrap.servers": broker.bootstrap}) as producer:  # the active segment is not cleaned
            for partition in range(2):
                producer.produce("prices", b"new", key=b"another", partition=partition)
        after = filling.contents(broker.bootstrap, topics=["prices"])
        left = {key: [record for record in records if record[2] != b"another"] for key, records in after.items()}
        if all(len(left[key]) == len(last[key]) for key in last):
            break
        assert time.monotonic() < deadline, "it is not compacted"
        time.sleep(0.2)
    assert left == {key: sorted(records.values()) for key, records in last.items()}


def test_stock_tools_find_everything(imported: Imported, java_tools: JavaTools) -> None:
    java_tools.bootstrap = imported.broker.bootstrap
    described = java_tools.run("TopicCommand", "--describe", "--topic", "prices").output
    assert "cleanup.policy=compact" in described
    assert set(GROUPS) <= set(java_tools.run("ConsumerGroupCommand", "--list").lines)
    assert "orders" in java_tools.run("ConsumerGroupCommand", "--describe", "--group", "classic-readers").output
    for file in sorted((imported.broker.data_dir / "orders-0").glob("*.log")):
        dumped = java_tools.run("DumpLogSegments", "--files", str(file), "--deep-iteration", bootstrap=False).output
        assert "isvalid: true" in dumped
        assert "isvalid: false" not in dumped


def test_after_a_stop_all_is_sound(imported: Imported) -> None:
    imported.broker.stop()
    assert " 0 faults, " in kwire("log", "verify", "--deep", imported.broker.data_dir)
    imported.broker.start()
    assert "moves" in {topic.name for topic in filling.ask(imported.broker, MetadataRequest(topics=None)).topics}
