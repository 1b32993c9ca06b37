"""ProducerPerformance."""

from __future__ import annotations

import re

import pytest

from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")


@pytest.mark.parametrize("partitions", [1, 6])
@pytest.mark.parametrize("acks", ["1", "all"])
def test_every_record_arrives(
    java_tools: JavaTools, kwire_topic_factory: TopicFactory, partitions: int, acks: str
) -> None:
    topic = kwire_topic_factory(partitions=partitions)
    load = ["--num-records", "50000", "--record-size", "100", "--throughput", "-1"]
    result = java_tools.run("ProducerPerformance", "--topic", topic, *load, "--command-property", f"acks={acks}")
    assert re.match(r"50000 records sent, [0-9.]+ records/sec", result.lines[-1])
    ends = [int(line.rpartition(":")[2]) for line in java_tools.run("GetOffsetShell", "--topic", topic).lines]
    assert len(ends) == partitions
    assert sum(ends) == 50_000
