"""BrokerApiVersionsCommand, and the tools that look at producers and reassignments."""

from __future__ import annotations

import re

import pytest

from compat_tests.java_tools.console import produce
from compat_tests.java_tools.tools import JavaTools

pytestmark = pytest.mark.xdist_group("java")

USABLE = {
    "Produce": 13,
    "Fetch": 18,
    "ListOffsets": 11,
    "Metadata": 13,
    "OffsetCommit": 10,
    "OffsetFetch": 10,
    "FindCoordinator": 6,
    "JoinGroup": 9,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "SyncGroup": 5,
    "DescribeGroups": 6,
    "ListGroups": 5,
    "ApiVersions": 4,
    "CreateTopics": 7,
    "DeleteTopics": 6,
    "DeleteRecords": 2,
    "InitProducerId": 5,
    "OffsetForLeaderEpoch": 4,
    "AddPartitionsToTxn": 5,
    "AddOffsetsToTxn": 4,
    "EndTxn": 5,
    "WriteTxnMarkers": 2,
    "TxnOffsetCommit": 5,
    "DescribeConfigs": 4,
    "AlterConfigs": 2,
    "AlterReplicaLogDirs": 2,
    "DescribeLogDirs": 5,
    "CreatePartitions": 3,
    "DeleteGroups": 2,
    "IncrementalAlterConfigs": 1,
    "AlterPartitionReassignments": 1,
    "ListPartitionReassignments": 0,
    "OffsetDelete": 0,
    "UpdateFeatures": 2,
    "DescribeCluster": 2,
    "DescribeProducers": 0,
    "DescribeTransactions": 0,
    "ListTransactions": 2,
    "ConsumerGroupHeartbeat": 1,
    "ConsumerGroupDescribe": 1,
    "ListConfigResources": 1,
    "DescribeTopicPartitions": 0,
}
"""The version that the tool's own client, of Apache Kafka 4.3, would use of each API."""


def test_the_client_finds_a_version_of_each_api(java_tools: JavaTools) -> None:
    result = java_tools.run("BrokerApiVersionsCommand")
    got = re.findall(r"^\t(\w+)\(\d+\): .*\[usable: (\d+)\]", result.output, re.MULTILINE)
    assert {name: int(version) for name, version in got if name in USABLE} == USABLE
    # The tool ends a broker's line with what it could not learn; there is one broker, and it answered.
    assert result.output.count("isFenced: false") == 1
    assert "ERROR" not in result.output


def test_the_state_of_a_producer(java_tools: JavaTools, kwire_topic: str) -> None:
    produce(java_tools, kwire_topic, ["a", "b", "c"], whole_records=False)
    place = ["--topic", kwire_topic, "--partition", "0"]
    header, line = java_tools.run("TransactionsCommand", "describe-producers", *place).lines
    state = dict(zip(re.split(r"\s*\t", header.strip()), re.split(r"\s*\t", line.strip()), strict=True))
    assert int(state["ProducerId"]) >= 0
    assert (state["ProducerEpoch"], state["LastSequence"]) == ("0", "2")
    assert (state["LatestCoordinatorEpoch"], state["CurrentTransactionStartOffset"]) == ("-1", "None")


def test_no_reassignment_is_under_way(java_tools: JavaTools) -> None:
    result = java_tools.run("ReassignPartitionsCommand", "--list")
    assert "No partition reassignments found." in result.output
