"""`kwire produce` and `kwire consume`, against a scripted broker that keeps what it is sent."""

from __future__ import annotations

import json
import os
import threading
from io import FileIO
from types import SimpleNamespace

import pytest

from kwire.cli.produce import READ_BYTES, _read
from kwire.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kwire.protocol.messages.produce import ProduceRequest, ProduceResponse
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import read_header
from kwire.protocol.records.record import Record, iter_records
from tests.client.test_client import listed
from tests.client.test_produce_consume import Leader, batch_of


@pytest.fixture
def leader(broker) -> Leader:
    """Its offsets: partition p begins at 0 and ends with its batches; every time is at offset 2."""
    kept = Leader(broker)

    def offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = listed(request)
        for asked, topic in zip(request.topics, response.topics, strict=True):
            for item, answer in zip(asked.partitions, topic.partitions, strict=True):
                batches = kept.batches.get(item.partition_index, [])
                end = read_header(batches[-1]).next_offset if batches else 0
                answer.offset = {-2: 0, -1: end}.get(item.timestamp, 2 if item.timestamp < 5000 else -1)
        return response

    broker.on(ListOffsetsRequest, offsets)
    return kept


def records(leader: Leader) -> list[Record]:
    """All it keeps, in order; the offsets are those in each batch as it was sent."""
    batches = [batch for number in sorted(leader.batches) for batch in leader.batches[number]]
    return [record for batch in batches for record in iter_records(batch)]


def test_lines(kwire_at, leader) -> None:
    result = kwire_at("produce", "t", "-p", "1", input=b"one\n\ntwo\r\nlast")
    assert (result.exit_code, result.output) == (0, "")
    assert [record.value for record in records(leader)] == [b"one", b"", b"two\r", b"last"]
    assert {record.key for record in records(leader)} == {None}
    assert list(leader.batches) == [1]


def test_keys_headers_nulls_and_time(kwire_at, leader) -> None:
    options = ["-K", ":", "-D", ";", "-Z", "-H", "a=1", "-H", "b", "-H", "c=", "--timestamp", "1234", "-p", "0"]
    kwire_at("produce", "t", *options, input=b"k:v:w;:x;k:;none")
    headers = [("a", b"1"), ("b", None), ("c", b"")]
    assert records(leader) == [
        Record(0, 1234, b"k", b"v:w", headers),
        Record(1, 1234, None, b"x", headers),
        Record(2, 1234, b"k", None, headers),
        Record(0, 1234, None, b"none", headers),  # without a delimiter at the end: a batch of its own
    ]


def test_a_key_for_all_and_empty_values(kwire_at, leader) -> None:
    kwire_at("produce", "t", "-k", "key", "-K", "\\t", "-p", "0", input=b"a\n\nown\tb\n")
    assert [(record.key, record.value) for record in records(leader)] == [
        (b"key", b"a"),
        (b"key", b""),
        (b"own", b"b"),
    ]


@pytest.mark.parametrize("codec", Compression)
def test_compression(kwire_at, leader, codec: Compression) -> None:
    assert kwire_at("produce", "t", "-z", codec.name.lower(), "-p", "0", input=b"a\nb\n").exit_code == 0
    (batch,) = leader.batches[0]
    assert read_header(batch).codec is codec
    assert read_header(batch).count == 2


@pytest.mark.parametrize(("acks", "sent"), [("0", 0), ("1", 1), ("all", -1)])
def test_acks(kwire_at, broker, leader, acks: str, sent: int) -> None:
    arrived = threading.Event()

    def note(request: ProduceRequest) -> ProduceResponse | None:
        assert request.acks == sent
        arrived.set()
        return leader.produce(request)

    broker.on(ProduceRequest, note)
    assert kwire_at("produce", "t", "--acks", acks, "-p", "0", input=b"a").exit_code == 0
    assert arrived.wait(30)


def test_files(kwire_at, leader, tmp_path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb\n")
    second.write_bytes(b"c\n" * 40_000 + b"end")
    kwire_at("produce", "t", "-p", "0", str(first), str(second))
    values = [record.value for record in records(leader)]
    assert (values[:3], len(values), values[-1]) == ([b"a", b"b", b"c"], 40_003, b"end")


def test_standard_input_among_files(kwire_at, leader, tmp_path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\n")
    kwire_at("produce", "t", "-p", "0", str(file), "-", input=b"b\n")
    kwire_at("produce", "t", "-p", "0", "-w", "-", input=b"c\nd\n")
    assert [record.value for record in records(leader)] == [b"a", b"b", b"c\nd\n"]


def test_whole_files(kwire_at, leader, tmp_path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a\nb\n")
    kwire_at("produce", "t", "-w", "-p", "0", str(file), str(file))
    assert [record.value for record in records(leader)] == [b"a\nb\n"] * 2


@pytest.mark.parametrize("whole", [[], ["-w"]])
def test_a_pipe_for_a_file(kwire_at, leader, tmp_path, whole: list[str]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[b"a\nb"])
    writer.start()
    result = kwire_at("produce", "t", "-p", "0", *whole, str(pipe))
    writer.join(30)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [record.value for record in records(leader)] == ([b"a\nb"] if whole else [b"a", b"b"])


def test_a_delimiter_across_two_reads(kwire_at, leader, tmp_path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * (READ_BYTES - 1) + b"::" + b"b")
    kwire_at("produce", "t", "-p", "0", "-D", "::", str(file))
    assert [len(record.value) for record in records(leader)] == [READ_BYTES - 1, 1]


@pytest.mark.parametrize("whole", [[], ["-w"]])
def test_what_has_no_end_is_one_line(kwire_at, leader, monkeypatch, whole: list[str]) -> None:
    monkeypatch.setattr("kwire.cli.produce.LARGEST_RECORD", 2 << 20)
    result = kwire_at("produce", "t", *whole, "/dev/zero")
    assert (result.exit_code, result.stderr) == (
        1,
        "kwire: a record of more than 2 MiB: is it the right --delimiter?\n",
    )


def test_a_closed_input_is_one_line(kwire_at, leader, monkeypatch) -> None:
    monkeypatch.setattr("kwire.cli.produce.sys", SimpleNamespace(stdin=None))
    result = kwire_at("produce", "t")
    assert (result.exit_code, result.stderr) == (1, "kwire: standard input is closed: name a FILE to read\n")


async def test_an_input_that_is_not_ready_is_waited_for() -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)

    class Late(FileIO):
        def read(self, size: int = -1) -> bytes | None:
            data = super().read(size)
            if data is None:
                os.write(write, b"late")
            return data

    with Late(read) as source:
        assert await _read(source) == b"late"
        os.close(write)
        assert await _read(source) == b""


def test_bytes_that_are_no_text(kwire_at, leader) -> None:
    kwire_at("produce", "t", "-p", "0", "-k", "\udcff", "-H", "h=\udcfe", "-D", "\udcfd", input=b"\xfc\xfd\0\xfd")
    headers: list[tuple[str, bytes | None]] = [("h", b"\xfe")]
    assert [record[2:] for record in records(leader)] == [(b"\xff", b"\xfc", headers), (b"\xff", b"\0", headers)]


def test_a_missing_file_is_one_line(kwire_at, leader, tmp_path) -> None:
    result = kwire_at("produce", "t", f"{tmp_path}/none")
    assert (result.exit_code, result.stderr) == (1, f"kwire: {tmp_path}/none: No such file or directory\n")


@pytest.fixture
def five(leader: Leader) -> Leader:
    leader.batches = {0: [batch_of(0, b"a", b"b", b"c"), batch_of(3, b"d")], 1: [batch_of(0, b"e")]}
    return leader


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-e"], "0 0 a,0 1 b,0 2 c,0 3 d,1 0 e"),
        (["-c", "2"], "0 0 a,0 1 b"),
        (["-e", "-p", "1"], "1 0 e"),
        (["-e", "-p", "0", "-o", "2"], "0 2 c,0 3 d"),
        (["-e", "-o", "-1"], "0 3 d,1 0 e"),
        (["-e", "-o", "-100"], "0 0 a,0 1 b,0 2 c,0 3 d,1 0 e"),
        (["-e", "-o", "end"], ""),
        (["-e", "-o", "s@1970-01-01", "-p", "0"], "0 2 c,0 3 d"),
        (["-e", "-o", "@9999"], ""),
        (["-o", "e@1000", "-p", "0"], "0 0 a,0 1 b"),
        (["-o", "e@9999", "-p", "0", "-p", "1"], "0 0 a,0 1 b,0 2 c,0 3 d,1 0 e"),
        (["-o", "1", "-o", "e@1000", "-p", "0"], "0 1 b"),
    ],
)
def test_what_is_read(kwire_at, options: list[str], expected: str) -> None:
    result = kwire_at("consume", "t", "-f", r"%p %o %s\n", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "".join(line + "\n" for line in expected.split(",") if line)


@pytest.mark.usefixtures("five")
def test_json(kwire_at) -> None:
    lines = kwire_at("consume", "t", "-e", "-J").stdout.splitlines()
    assert [json.loads(line)["value"] for line in lines] == ["a", "b", "c", "d", "e"]


@pytest.mark.usefixtures("five")
def test_an_unknown_partition(kwire_at) -> None:
    result = kwire_at("consume", "t", "-p", "9")
    assert result.exit_code == 1
    assert result.stderr.startswith("kwire: UNKNOWN_TOPIC_OR_PARTITION: partition 9 of topic 't'")
