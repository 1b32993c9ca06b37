"""DumpLogSegments on the files that the broker writes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.java_tools.console import produce
from compat_tests.java_tools.test_offsets import log_dir
from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")

FolderOf = Callable[[str], Path]
COMPLAINTS = re.compile(r"mismatch|non-?consecutive|corrupt|invalid|error|exception|isvalid: false", re.IGNORECASE)
TIMEOUT = 30
MIB = 1024 * 1024
PERFORMANCE = ["--num-records", "6000", "--record-size", "1000", "--throughput", "-1"]


@pytest.fixture
def folder_of(java_tools: JavaTools, against: object) -> FolderOf:
    """Finds the folder of a topic's partition 0; skips where another broker's files are not on this machine."""

    def find(topic: str) -> Path:
        folder = Path(log_dir(java_tools, topic)["logDir"]) / f"{topic}-0"
        if against and not folder.is_dir():
            pytest.skip("the broker's files are out of reach")
        return folder

    return find


def dump(tools: JavaTools, file: Path, *arguments: str) -> list[str]:
    """What the tool prints of a file, when it has nothing to complain about."""
    result = tools.run("DumpLogSegments", "--files", str(file), *arguments, bootstrap=False)
    said = result.output.replace("isvalid: true", "") + result.errors
    assert not COMPLAINTS.search(said.replace(str(file), "")), said
    return result.lines


def wait_until_as_long_as_the_log(tools: JavaTools, topic: str, files: list[Path]) -> None:
    """While much is appended to a segment, room is made behind its end: of that the tool says "invalid bytes"."""
    (partition,) = log_dir(tools, topic)["partitions"]
    deadline = time.monotonic() + TIMEOUT
    while (size := sum(file.stat().st_size for file in files)) != partition["size"]:
        assert time.monotonic() < deadline, size
        time.sleep(0.1)


def numbers(lines: list[str], field: str) -> list[int]:
    return [int(found[1]) for line in lines if (found := re.search(rf"\b{field}: (-?\d+)", line))]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_segments_of_every_compression(
    java_tools: JavaTools, folder_of: FolderOf, kwire_topic: str, codec: str
) -> None:
    lines = [f"h:{i}|key {i}|value {i}" for i in range(50)]
    produce(java_tools, kwire_topic, lines, "--compression-codec", codec)
    (file,) = folder_of(kwire_topic).glob("*.log")
    got = dump(java_tools, file, "--print-data-log")
    batches = [line for line in got if line.startswith("baseOffset: ")]
    assert numbers(batches, "baseOffset")[0] == 0
    assert numbers(batches, "lastOffset")[-1] == 49
    assert sum(numbers(batches, "count")) == 50
    assert all(f"compresscodec: {codec}" in line and "isvalid: true" in line for line in batches)
    records = [line for line in got if line.startswith("|")]
    assert [line.partition(" headerKeys: ")[2] for line in records] == [
        f"[h] key: key {i} payload: value {i}" for i in range(50)
    ]


def test_rolled_segments_with_their_indexes_and_snapshots(
    java_tools: JavaTools, folder_of: FolderOf, kwire_topic_factory: TopicFactory
) -> None:
    topic = kwire_topic_factory(configs={"segment.bytes": MIB})
    java_tools.run("ProducerPerformance", "--topic", topic, *PERFORMANCE)
    folder = folder_of(topic)
    segments = sorted(folder.glob("*.log"))
    assert len(segments) > 4
    wait_until_as_long_as_the_log(java_tools, topic, segments)
    next_offset = 0
    for segment in segments:
        base = int(segment.stem)
        batches = [line for line in dump(java_tools, segment) if line.startswith("baseOffset: ")]
        assert numbers(batches, "baseOffset")[0] == base == next_offset
        next_offset = numbers(batches, "lastOffset")[-1] + 1
        if segment is segments[-1]:
            continue
        # The dump compares each entry with the batch it points to.
        entries = numbers(dump(java_tools, segment.with_suffix(".index")), "offset")
        assert len(entries) > 10
        assert entries == sorted(set(entries))
        assert base <= entries[0] < entries[-1] < next_offset
        times = dump(java_tools, segment.with_suffix(".timeindex"))
        assert numbers(times, "timestamp")
        assert max(numbers(times, "offset")) < next_offset
        for suffix in (".index", ".timeindex"):
            checked = dump(java_tools, segment.with_suffix(suffix), "--index-sanity-check")
            assert any("passed sanity check" in line for line in checked)
    assert next_offset == 6000
    snapshots = sorted(folder.glob("*.snapshot"))
    assert snapshots
    for snapshot in snapshots:
        (producer,) = [line for line in dump(java_tools, snapshot) if "producerId: " in line]
        assert numbers([producer], "lastOffset") == [int(snapshot.stem) - 1]


def test_the_segment_that_takes_appends(java_tools: JavaTools, folder_of: FolderOf, kwire_topic: str) -> None:
    java_tools.run("ProducerPerformance", "--topic", kwire_topic, *PERFORMANCE)
    (file,) = folder_of(kwire_topic).glob("*.log")
    wait_until_as_long_as_the_log(java_tools, kwire_topic, [file])
    assert sum(numbers(dump(java_tools, file), "count")) == 6000
    # How much of its indexes is in their files already is the broker's affair; what is there must be right.
    dump(java_tools, file.with_suffix(".index"))
    dump(java_tools, file.with_suffix(".timeindex"))
