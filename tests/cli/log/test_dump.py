"""`kwire log dump`: good files, damaged ones, and those Apache Kafka has not finished yet."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kwire.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from kwire.protocol.coordinator_records.serde import encode_key, encode_value
from kwire.protocol.framed import encode_framed
from kwire.protocol.metadata_records.topic import TopicRecord
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.record import Record
from kwire.storage.checkpoints import encode_epochs, encode_offsets, encode_partition_metadata
from kwire.storage.offset_index import OffsetIndex
from kwire.storage.producer_entry import BatchMetadata, ProducerEntry
from kwire.storage.producer_snapshot import encode_snapshot
from kwire.storage.reserve import PADDING
from kwire.storage.time_index import TimeIndex
from kwire.storage.transaction_index import AbortedTransaction

NAME = "00000000000000000010"


def segment() -> bytes:
    plain = build_batch(
        [Record(10, 1000, b"key", b"value", [("h", b"\xff"), ("n", None)]), Record(11, 1001, None, None)],
        base_offset=10,
        leader_epoch=3,
        compression=Compression.LZ4,
    )
    marker = build_end_txn_marker(7, 1, commit=False, coordinator_epoch=2, timestamp=1002, base_offset=12)
    return plain + marker


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """The folder of a partition."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{NAME}.log").write_bytes(segment())
    offsets, times = OffsetIndex(10), TimeIndex(10)
    offsets.append(11, 0)
    offsets.append(12, 256)
    times.maybe_append(1001, 11)
    (folder / f"{NAME}.index").write_bytes(offsets.encode() + bytes(80))
    (folder / f"{NAME}.timeindex").write_bytes(times.encode() + bytes(120))
    (folder / f"{NAME}.txnindex").write_bytes(AbortedTransaction(7, 10, 12, 13).encode())
    producer = ProducerEntry(7, 1, 2, 1002, 10, [BatchMetadata(4, 11, 1, 1001)])
    (folder / f"{NAME}.snapshot").write_bytes(encode_snapshot([producer]))
    (folder / "leader-epoch-checkpoint").write_bytes(encode_epochs([(3, 10)]))
    (folder / "partition.metadata").write_bytes(encode_partition_metadata("AAECAwQFBgcICQoLDA0ODw"))
    (folder / "notes.txt").write_text("not ours")
    return folder


def lines(kwire, *arguments: str) -> list[dict]:
    result = kwire("log", "dump", "--format", "json", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_batches(kwire, partition: Path) -> None:
    file, first, marker = lines(kwire, f"{partition}/{NAME}.log")
    assert file == {"file": f"{partition}/{NAME}.log"}
    assert (first["batch"], first["last"], first["count"], first["codec"]) == (10, 11, 2, "lz4")
    assert (first["leader_epoch"], first["timestamp"], first["crc_valid"]) == (3, 1001, True)
    assert (marker["batch"], marker["position"], marker["control"]) == (12, first["size"], True)
    assert (marker["producer_id"], marker["producer_epoch"], marker["transactional"]) == (7, 1, True)


def test_records(kwire, partition: Path) -> None:
    found = [line for line in lines(kwire, "-r", f"{partition}/{NAME}.log") if "record" in line]
    assert found[0] == {
        "record": 10,
        "timestamp": 1000,
        "key": "key",
        "value": "value",
        "headers": [["h", {"base64": "/w=="}], ["n", None]],
    }
    assert (found[1]["key"], found[1]["value"]) == (None, None)
    assert found[2]["control"] == "abort"


def test_text(kwire, partition: Path) -> None:
    output = kwire("log", "dump", "-r", f"{partition}/{NAME}.log").stdout.splitlines()
    assert output[0] == f"{partition}/{NAME}.log"
    assert output[1].startswith("  batch=10 last=11 position=0 size=")
    assert "control=false" in output[1]
    assert output[2] == "    record=10 timestamp=1000 key='key' value='value' headers=[h: '\\xff', n: null]"
    assert output[3] == "    record=11 timestamp=1001 key=null value=null headers=[]"


def test_a_folder_in_order(kwire, partition: Path) -> None:
    found = lines(kwire, str(partition))
    files = [Path(line["file"]).name for line in found if "file" in line]
    assert files == [
        f"{NAME}.index",
        f"{NAME}.log",
        f"{NAME}.snapshot",
        f"{NAME}.timeindex",
        f"{NAME}.txnindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert {"offset": 12, "position": 256} in found
    assert {"timestamp": 1001, "offset": 11} in found
    assert {"aborted_producer_id": 7, "first_offset": 10, "last_offset": 12, "last_stable_offset": 13} in found
    assert {"leader_epoch": 3, "start_offset": 10} in found
    assert {"topic_id": "AAECAwQFBgcICQoLDA0ODw"} in found
    (producer,) = [line for line in found if "producer_id" in line and "batch" not in line]
    assert (producer["last_sequence"], producer["last_offset"], producer["transaction_first_offset"]) == (4, 11, 10)


def test_a_log_dir(kwire, partition: Path) -> None:
    (partition.parent / "recovery-point-offset-checkpoint").write_bytes(encode_offsets({("orders", 0): 13}))
    (partition.parent / "meta.properties").write_text("")
    found = lines(kwire, str(partition.parent))
    assert {"topic": "orders", "partition": 0, "offset": 13} in found
    assert {"offset": 12, "position": 256} in found


@pytest.mark.parametrize("padding", [b"\0", PADDING])
def test_padding_at_the_end(kwire, partition: Path, padding: bytes) -> None:
    (partition / f"{NAME}.log").write_bytes(segment() + padding * 1000)
    assert lines(kwire, f"{partition}/{NAME}.log")[-1] == {"preallocated": 1000, "position": len(segment())}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: data[:-10], "a torn batch at position"),
        (lambda data: data + b"x" * 20, "a torn batch of 20 bytes at position"),
        (lambda data: data[:-1] + b"x", "has a wrong checksum"),
        (lambda data: data[:16] + b"\1" + data[17:], "no batch of format v2 at position 0 (magic 1"),
    ],
)
def test_a_damaged_segment(kwire, partition: Path, change, complaint: str) -> None:
    path = partition / f"{NAME}.log"
    path.write_bytes(change(segment()))
    result = kwire("log", "dump", str(path), f"{partition}/partition.metadata")
    assert result.exit_code == 1
    assert complaint in result.stdout
    assert result.stderr == f"kwire: damaged: {path}\n"
    assert "topic_id=" in result.stdout, "files after a damaged one are shown all the same"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (f"{NAME}.index", b"\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\1"),
        (f"{NAME}.timeindex", bytes(7) + b"\2\0\0\0\1" + bytes(7) + b"\1\0\0\0\1"),
        (f"{NAME}.snapshot", b"\0\1broken"),
        (f"{NAME}.txnindex", b"\1" * 34),
        ("leader-epoch-checkpoint", b"rubbish"),
        ("other", b""),
    ],
)
def test_other_damaged_files(kwire, tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    result = kwire("log", "dump", f"{tmp_path}/{name}")
    assert (result.exit_code, result.stderr) == (1, f"kwire: damaged: {tmp_path}/{name}\n")
    assert "damage=" in result.stdout


def test_a_file_that_cannot_be_written(kwire, tmp_path: Path) -> None:
    """A running program's file is one, whoever runs the tests."""
    path = tmp_path / f"{NAME}.log"
    path.symlink_to(Path(sys.executable).resolve())
    result = kwire("log", "dump", str(path))
    assert (result.exit_code, result.stderr) == (1, f"kwire: damaged: {path}\n")


def test_a_folder_without_files_of_a_log(kwire, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    result = kwire("log", "dump", str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, f"kwire: {tmp_path}: no files of a log there\n")


def test_no_such_file(kwire, tmp_path: Path) -> None:
    result = kwire("log", "dump", f"{tmp_path}/none")
    assert (result.exit_code, result.stderr) == (1, f"kwire: {tmp_path}/none: No such file or directory\n")


def dumped_values(kwire, folder: Path, *records: Record) -> list[dict]:
    folder.mkdir()
    (folder / f"{NAME}.log").write_bytes(build_batch(list(records), base_offset=10))
    found = lines(kwire, "-r", f"{folder}/{NAME}.log")
    return [line for line in found if "record" in line]


def test_what_a_group_committed(kwire, tmp_path: Path) -> None:
    key = encode_key(OffsetCommitKey(group="g", topic="t", partition=3))
    value = encode_value(OffsetCommitValue(offset=7, metadata="", commit_timestamp=5), 3)
    unknown = (99).to_bytes(2, "big")
    committed, removed, other = dumped_values(
        kwire,
        tmp_path / "__consumer_offsets-4",
        Record(10, 5, key, value),
        Record(11, 5, key, None),
        Record(12, 5, unknown, b"x"),
    )
    assert committed["key"] == {"type": "OffsetCommit", "group": "g", "topic": "t", "partition": 3}
    assert (committed["value"]["type"], committed["value"]["offset"]) == ("OffsetCommit", 7)
    assert (removed["key"], removed["value"]) == (committed["key"], None)
    assert (other["undecoded"], other["value"]) == ("unknown record type 99", "x")


def test_what_a_controller_wrote(kwire, tmp_path: Path) -> None:
    topic = encode_framed(TopicRecord(name="orders", topic_id=bytes(range(16))), 0)
    created, passing, unknown = dumped_values(
        kwire,
        tmp_path / "__cluster_metadata-0",
        Record(10, 5, None, topic, []),
        Record(11, 5, None, b"\1\x14\0\0"),
        Record(12, 5, None, b"\1\x63\0"),
    )
    assert created["value"] == {"type": "Topic", "name": "orders", "topic_id": "AAECAwQFBgcICQoLDA0ODw"}
    assert passing["value"] == "\1\x14\0\0"
    assert unknown["undecoded"] == "metadata record type 99 is not known"


def test_a_snapshot_of_a_controller(kwire, tmp_path: Path) -> None:
    topic = encode_framed(TopicRecord(name="orders", topic_id=bytes(16)), 0)
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "00000000000000000040-0000000002.checkpoint").write_bytes(build_batch([Record(0, 0, None, topic, [])]))
    assert lines(kwire, "-r", str(folder))[-1]["value"]["name"] == "orders"
