"""`kwire log sizes`, of log dirs and of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.cli.byte_sizes import human_bytes
from kwire.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from kwire.protocol.remote_log_records.serde import encode_record
from kwire.storage.tiered.remote_segment import SegmentState


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    for name, size in (("a-0", 10), ("a-1", 3000), ("b-0", 500)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "00000000000000000000.log").write_bytes(bytes(size))
        (folder / "00000000000000000007.log").write_bytes(bytes(1))
        (folder / "00000000000000000000.index").write_bytes(bytes(8))
    (tmp_path / "gone-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "meta.properties").touch()
    return tmp_path


def rows(kwire, *arguments: str) -> list[list[str]]:
    result = kwire("log", "sizes", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split("\t") for line in result.stdout.splitlines()]


def test_a_dir(kwire, log_dir: Path) -> None:
    assert rows(kwire, str(log_dir)) == [
        ["a", "1", "local", "", "2", "3001", "8", str(log_dir)],
        ["b", "0", "local", "", "2", "501", "8", str(log_dir)],
        ["a", "0", "local", "", "2", "11", "8", str(log_dir)],
    ]


def test_by_name_and_by_topic(kwire, log_dir: Path) -> None:
    assert [row[:2] for row in rows(kwire, "--sort", "name", str(log_dir))] == [["a", "0"], ["a", "1"], ["b", "0"]]
    assert rows(kwire, "--by", "topic", str(log_dir)) == [
        ["a", "", "local", "", "4", "3012", "16", ""],
        ["b", "", "local", "", "2", "501", "8", ""],
    ]


def test_a_partition(kwire, log_dir: Path) -> None:
    assert [row[:2] for row in rows(kwire, str(log_dir / "b-0"))] == [["b", "0"]]


def remote(state: SegmentState, number: int, size: int = 0) -> bytes:
    """A record about a segment of a-1: its copy begins, or it goes into another state."""
    place = TopicIdPartitionEntry(name="a", id=bytes(16), partition=1)
    segment = RemoteLogSegmentIdEntry(topic_id_partition=place, id=bytes([number]) * 16)
    if state is SegmentState.COPY_SEGMENT_STARTED:
        return encode_record(
            RemoteLogSegmentMetadataRecord(
                remote_log_segment_id=segment,
                end_offset=9,
                segment_leader_epochs=[SegmentLeaderEpochEntry(leader_epoch=0, offset=0)],
                segment_size_in_bytes=size,
            )
        )
    return encode_record(
        RemoteLogSegmentMetadataUpdateRecord(remote_log_segment_id=segment, remote_log_segment_state=state)
    )


def test_remote_storage(kwire, log_dir: Path) -> None:
    """Of four segments one is not finished, and one is being deleted."""
    started, finished = SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED
    values = [remote(started, number, 1000 + number) for number in range(4)]
    values += [remote(finished, number) for number in range(3)]
    values.append(remote(SegmentState.DELETE_SEGMENT_STARTED, 0))
    values.insert(2, encode_record(RemoteLogSegmentMetadataRecord()))  # of no offsets: brokers pass it over
    records = [Record(index, 0, None, value, []) for index, value in enumerate(values)]
    folder = log_dir / "__remote_log_metadata-7"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(build_batch(records) + b"torn")
    of_remote = [row[:6] for row in rows(kwire, str(log_dir)) if row[2] == "remote"]
    assert of_remote == [["a", "1", "remote", "", "2", "2003"]]
    by_topic = [row[:6] for row in rows(kwire, "--by", "topic", "--sort", "name", str(log_dir)) if row[0] == "a"]
    assert sorted(by_topic) == [["a", "", "local", "", "4", "3012"], ["a", "", "remote", "", "2", "2003"]]
    dumped = kwire("log", "dump", "-r", "--format", "json", str(folder)).stdout
    assert '"type": "RemoteLogSegmentMetadataUpdate"' in dumped


def test_json(kwire, log_dir: Path) -> None:
    result = json.loads(kwire("log", "sizes", "--format", "json", str(log_dir)).stdout)
    assert result["total_bytes"] == 3513
    assert result["sizes"][0]["segments"] == 2


def test_a_cluster(kwire_at, broker) -> None:
    def answer(request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        assert request.topics is None
        partitions = [DescribeLogDirsPartition(partition_index=number, partition_size=10 + number) for number in (0, 1)]
        topics = [DescribeLogDirsTopic(name="t", partitions=partitions)]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])

    broker.on(DescribeLogDirsRequest, answer)
    assert rows(kwire_at) == [
        ["t", "1", "local", "1", "", "11", "", "/data"],
        ["t", "0", "local", "1", "", "10", "", "/data"],
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1536, "1.5 KiB"), (120 << 20, "120 MiB"), (5 << 50, "5.0 PiB")],
)
def test_human_bytes(size: int, text: str) -> None:
    assert human_bytes(size) == text
