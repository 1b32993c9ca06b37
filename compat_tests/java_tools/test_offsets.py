"""GetOffsetShell, DeleteRecordsCommand and LogDirsCommand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.java_tools.console import consume, produce
from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")


def offset_at(tools: JavaTools, topic: str, time: int | str) -> str:
    """The offset of partition 0 that GetOffsetShell prints for this time; "" where it has none."""
    lines = tools.run("GetOffsetShell", "--topic", topic, "--time", str(time)).lines
    return lines[0].removeprefix(f"{topic}:0:") if lines else ""


def log_dir(tools: JavaTools, topic: str) -> dict:
    """The log directory of the topic, with the topic's partitions, as LogDirsCommand prints it."""
    lines = tools.run("LogDirsCommand", "--describe", "--topic-list", topic).lines
    (broker,) = json.loads(lines[-1])["brokers"]
    (found,) = [one for one in broker["logDirs"] if one["partitions"]]
    return found


def test_offsets_by_kind(java_tools: JavaTools, kwire_topic: str) -> None:
    produce(java_tools, kwire_topic, [str(i) for i in range(10)], whole_records=False)
    kinds = ["latest", "earliest", "max-timestamp", "earliest-local", "-1", "-2"]
    got = {kind: offset_at(java_tools, kwire_topic, kind) for kind in kinds}
    last = int(got.pop("max-timestamp"))
    assert got == {"latest": "10", "earliest": "0", "earliest-local": "0", "-1": "10", "-2": "0"}
    assert 0 <= last <= 9


def test_kinds_that_only_a_tiered_topic_has(java_tools: JavaTools, kwire_topic: str) -> None:
    produce(java_tools, kwire_topic, ["a"], whole_records=False)
    assert offset_at(java_tools, kwire_topic, "latest-tiered") == ""
    assert offset_at(java_tools, kwire_topic, "earliest-pending-upload") == ""


def test_offsets_by_time(java_tools: JavaTools, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(configs={"message.timestamp.type": "LogAppendTime"})
    for value in "abc":
        produce(java_tools, topic, [value], whole_records=False)
    times = [int(line.timestamp.partition(":")[2]) for line in consume(java_tools, topic, 3)]
    for time in times:
        assert offset_at(java_tools, topic, time) == str(times.index(time))
    assert offset_at(java_tools, topic, times[0] - 1000) == "0"
    assert offset_at(java_tools, topic, times[-1] + 1) == ""


def test_offsets_of_an_empty_topic(java_tools: JavaTools, kwire_topic: str) -> None:
    assert [offset_at(java_tools, kwire_topic, kind) for kind in ("earliest", "latest")] == ["0", "0"]
    assert offset_at(java_tools, kwire_topic, "max-timestamp") == ""


def test_offsets_of_chosen_partitions(java_tools: JavaTools, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(partitions=6)
    got = java_tools.run("GetOffsetShell", "--topic-partitions", f"{topic}:1-3,{topic}:5").lines
    assert got == [f"{topic}:{partition}:0" for partition in (1, 2, 5)]


def test_records_before_an_offset_are_deleted(
    java_tools: JavaTools, kwire_topic: str, tmp_path: Path, settled: Callable[[Callable[[], None]], None]
) -> None:
    produce(java_tools, kwire_topic, [str(i) for i in range(20)], whole_records=False)

    def delete_before(offset: int) -> str:
        file = tmp_path / "offsets.json"
        wanted = {"topic": kwire_topic, "partition": 0, "offset": offset}
        file.write_text(json.dumps({"partitions": [wanted], "version": 1}))
        result = java_tools.run("DeleteRecordsCommand", "--offset-json-file", str(file))
        return result.output + result.errors

    assert "low_watermark: 12" in delete_before(12)
    assert offset_at(java_tools, kwire_topic, "earliest") == "12"
    assert [line.value for line in consume(java_tools, kwire_topic, 2)] == ["12", "13"]
    assert "OffsetOutOfRangeException" in delete_before(21)
    # -1 stands for the end.
    assert "low_watermark: 20" in delete_before(-1)
    assert offset_at(java_tools, kwire_topic, "earliest") == "20"


def test_the_log_directory_with_the_size_of_each_partition(
    java_tools: JavaTools, kwire_topic_factory: TopicFactory
) -> None:
    topic = kwire_topic_factory(partitions=3)
    produce(java_tools, topic, [f"k{i}|{'x' * 1000}" for i in range(200)], "--reader-property", "parse.headers=false")
    found = log_dir(java_tools, topic)
    assert found["error"] is None
    partitions = {one["partition"]: one for one in found["partitions"]}
    assert set(partitions) == {f"{topic}-{i}" for i in range(3)}
    for name, one in partitions.items():
        assert one["size"] == sum(file.stat().st_size for file in (Path(found["logDir"]) / name).glob("*.log"))
        assert (one["offsetLag"], one["isFuture"]) == (0, False)
    assert sum(one["size"] for one in partitions.values()) > 200_000
