"""The command line against a running broker: `kwire topics`, `kwire produce`, `kwire consume`."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.cases import BASE_TIME, COMPRESSIONS, numbered
from compat_tests.driver import TIMEOUT
from compat_tests.kwire_cli.cli import Cli
from compat_tests.kwire_client.driver import KwireDriver


def test_the_life_of_a_topic(cli: Cli, new_name: Callable[[], str], settled: Callable[..., Any]) -> None:
    name = new_name()
    cli("topics", "create", name, "--partitions", "2", "--config", "retention.ms=100000")
    assert b"TOPIC_ALREADY_EXISTS" in cli("topics", "create", name, code=1).stderr
    cli("topics", "create", name, "--if-not-exists")

    def there() -> None:
        assert f"{name}\t2\t1" in cli.lines("topics", "list")

    settled(there)
    (described,) = cli.json("topics", "describe", name)
    assert described["configs"] == {"retention.ms": "100000"}
    assert [detail["partition"] for detail in described["partition_details"]] == [0, 1]

    cli("topics", "alter", name, "-p", "3", "-c", "segment.bytes=2000000", "--delete-config", "retention.ms")

    def altered() -> None:
        (now,) = cli.json("topics", "describe", name)
        assert (now["partitions"], now["configs"], now["id"]) == (3, {"segment.bytes": "2000000"}, described["id"])

    settled(altered)
    assert b"INVALID_CONFIG" in cli("topics", "alter", name, "-c", "segment.bytes=x", code=1).stderr
    assert b"INVALID_PARTITIONS" in cli("topics", "alter", name, "-p", "2", code=1).stderr
    cli("topics", "delete", name)

    def gone() -> None:
        assert not any(line.startswith(f"{name}\t") for line in cli.lines("topics", "list"))

    settled(gone)
    assert b"UNKNOWN_TOPIC_OR_PARTITION" in cli("topics", "delete", name, code=1).stderr
    cli("topics", "delete", name, "--if-exists")


def test_a_topic_that_may_not_be(cli: Cli) -> None:
    assert b"INVALID_TOPIC_EXCEPTION" in cli("topics", "create", "a b", "-p", "1", "-r", "1", code=1).stderr
    assert b"INVALID_REPLICATION_FACTOR" in cli("topics", "create", "valid", "-r", "9", code=1).stderr


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_is_consumed(cli: Cli, kwire_topic: str, compression: str) -> None:
    text = b"k1:v1\nk2:\nnone\n\xff:\xfe\n"
    options = ["-K", ":", "-Z", "-H", "h=1", "-H", "n", "-z", compression, "--timestamp", "2026-01-31T12:00"]
    cli("produce", kwire_topic, *options, input=text)

    output = cli("consume", kwire_topic, "-e", "-f", r"%p %o %T %k(%K)=%s(%S) %h\n").stdout
    assert output.split(b"\n")[:-1] == [
        b"0 0 1769860800000 k1(2)=v1(2) h=1,n=NULL",
        b"0 1 1769860800000 k2(2)=(-1) h=1,n=NULL",
        b"0 2 1769860800000 (-1)=none(4) h=1,n=NULL",
        b"0 3 1769860800000 \xff(1)=\xfe(1) h=1,n=NULL",
    ]


def test_keys_spread_over_partitions_as_with_other_clients(
    cli: Cli, kwire_topic_factory: Callable[..., str], kwire_broker: Any
) -> None:
    """kafka-python's partitioner is that of the Java client as well."""
    from kafka import KafkaProducer

    topic = kwire_topic_factory(partitions=7)
    keys = [f"key-{number}" for number in range(50)]
    cli("produce", topic, "-K", ":", input="".join(f"{key}:ours\n" for key in keys).encode())
    with KafkaProducer(bootstrap_servers=kwire_broker.bootstrap) as producer:
        for key in keys:
            producer.send(topic, b"theirs", key.encode())
    found = {tuple(line.split(" ")) for line in cli.lines("consume", topic, "-e", "-f", r"%s %k %p\n")}
    assert len(found) == 100
    ours, theirs = ({found[1:] for found in found if found[0] == who} for who in ("ours", "theirs"))
    assert ours == theirs


@pytest.fixture
def timed(kwire_broker: Any, kwire_topic: str) -> str:
    """A topic of 300 records, a millisecond apart; their keys are their numbers."""
    KwireDriver(kwire_broker.bootstrap).produce(kwire_topic, numbered(300))
    return kwire_topic


@pytest.mark.parametrize(
    ("options", "first", "count"),
    [
        ([], 0, 300),
        (["-o", "beginning", "-c", "7"], 0, 7),
        (["-o", "150"], 150, 150),
        (["-o", "-5"], 295, 5),
        (["-o", "end"], 300, 0),
        (["-o", f"s@{BASE_TIME + 177}"], 177, 123),
        (["-o", f"s@{BASE_TIME + 500}"], 300, 0),
        (["-o", f"@{BASE_TIME + 10}", "-o", f"e@{BASE_TIME + 20}"], 10, 10),
    ],
)
def test_where_reading_begins_and_ends(cli: Cli, timed: str, options: list[str], first: int, count: int) -> None:
    found = cli.lines("consume", timed, "-e", "-f", r"%o %k\n", *options)
    assert found == [f"{number} {number}" for number in range(first, first + count)]


def test_offsets_that_are_not_there(cli: Cli, timed: str) -> None:
    found = cli("consume", timed, "-o", "1000", code=1).stderr.decode()
    assert found.startswith(f"kwire: OFFSET_OUT_OF_RANGE: {timed}-0 at offset 1000")
    assert cli.lines("topics", "describe", timed, "--offsets") == [f"{timed}\t0\t1\t1\t1\t0\t300"]


def test_records_as_json(cli: Cli, timed: str) -> None:
    (line,) = cli.lines("consume", timed, "-o", "42", "-c", "1", "-J")
    record = json.loads(line)
    assert (record["topic"], record["offset"], record["key"]) == (timed, 42, "42")
    assert (record["timestamp"], record["timestamp_type"]) == (BASE_TIME + 42, "create")


def test_lines_pass_as_they_are_typed(cli: Cli, kwire_topic: str) -> None:
    """A producer whose input goes on sends what it has; a consumer that waits prints what comes."""
    with cli.running("consume", kwire_topic) as consumer, cli.running("produce", kwire_topic) as producer:
        assert producer.stdin is not None
        assert consumer.stdout is not None
        for line in (b"first\n", b"second\n"):
            producer.stdin.write(line)
            producer.stdin.flush()
            assert consumer.stdout.readline() == line
        producer.stdin.close()
        assert producer.wait(TIMEOUT) == 0
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(TIMEOUT) == 130
        assert consumer.stderr is not None
        assert consumer.stderr.read() == b""


def test_ctrl_c_while_waiting_for_input(cli: Cli, kwire_topic: str) -> None:
    with cli.running("produce", kwire_topic) as producer, cli.running("consume", kwire_topic, "-c", "1") as consumer:
        assert producer.stdin is not None
        assert producer.stderr is not None
        producer.stdin.write(b"sent\n")
        producer.stdin.flush()
        assert consumer.wait(TIMEOUT) == 0
        producer.send_signal(signal.SIGINT)
        assert producer.wait(TIMEOUT) == 130
        assert producer.stderr.read() == b""


def test_a_reader_that_leaves(cli: Cli, timed: str) -> None:
    with cli.running("consume", timed, "-f", "%s" + "." * 10_000 + r"\n") as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline().startswith(b"0 ")
        consumer.stdout.close()
        assert consumer.wait(TIMEOUT) == 1
        assert consumer.stderr is not None
        assert consumer.stderr.read() == b""


def test_files_and_large_records(cli: Cli, kwire_topic: str, tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(bytes(range(256)) * 4000)
    small.write_bytes(b"small")
    cli("produce", kwire_topic, "--whole", str(large), str(small))
    assert cli("consume", kwire_topic, "-e", "-f", "%s").stdout == large.read_bytes() + b"small"
    too_large = tmp_path / "too large"
    too_large.write_bytes(bytes(2 << 20))
    assert b"kwire: MESSAGE_TOO_LARGE" in cli("produce", kwire_topic, "-w", str(too_large), code=1).stderr


def test_an_unknown_topic(cli: Cli, new_name: Callable[[], str]) -> None:
    name = new_name()
    for command in (["consume", name], ["topics", "describe", name], ["topics", "alter", name, "-p", "2"]):
        complaint = cli(*command, code=1).stderr.decode()
        assert complaint.startswith("kwire: UNKNOWN_TOPIC_OR_PARTITION: ")
        assert complaint.count("\n") == 1


def test_producing_creates_a_topic(cli: Cli, new_name: Callable[[], str]) -> None:
    name = new_name()
    cli("produce", name, "--idempotent", input=b"first\n")
    assert cli.lines("consume", name, "-e") == ["first"]
