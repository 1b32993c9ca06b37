"""Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs, ListPartitionReassignments."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.asking import TOPIC, batch, describe, fill
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest
from kwire.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kwire.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kwire.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(14)
BY_ID = 12
NO_ID = bytes(16)
UNKNOWN_ID = b"an unknown topic"
NAMELESS = "topics without a name"
BAD_NAMES = ("", ".", "..", "bad name", "bad/name", "ü", "a" * 250, "a" * 249 + "ü")


def named(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def test_topics_by_name(both: Both) -> None:
    def scenario(side: Side) -> None:
        one, many = side.topic("one"), side.topic("many", partitions=5)
        for version in VERSIONS:
            # Before version 4 a client could not forbid creation.
            options: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
            side.ask(MetadataRequest(topics=named(one), **options), version, note="one")
            side.ask(MetadataRequest(topics=named(many, one), **options), version, note="two")
            side.ask(MetadataRequest(topics=named(one, one), **options), version, note="one twice")
            if version >= 4:
                side.ask(MetadataRequest(topics=named(side.name("absent"), one), **options), version, note="unknown")
                side.ask(MetadataRequest(topics=named("__transaction_state"), **options), version, note="internal")
                side.ask(MetadataRequest(topics=named("__cluster_metadata"), **options), version, note="metadata")
            for name in BAD_NAMES:
                side.ask(MetadataRequest(topics=named(name), **options), version, note=name[:10])

    both.agree(scenario)


def test_no_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS[1:]:
            side.ask(MetadataRequest(topics=[]), version)

    both.agree(scenario)


def test_all_topics(both: Both) -> None:
    """Only what this test made is compared: Apache Kafka has topics of its own."""

    def scenario(side: Side) -> None:
        made = {side.topic("one"), side.topic("two", partitions=2)}
        for version in VERSIONS:
            response = side.call(MetadataRequest(topics=None if version else []), version)
            response.topics = [topic for topic in response.topics if topic.name in made]
            side.record_response(f"Metadata v{version} of all topics", response)

    both.agree(scenario)


def test_topics_by_id(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (10, 11, 12, 13):
            for name, topic_id in (
                (None, side.id_of(topic)),
                (topic, side.id_of(topic)),
                ("another", side.id_of(topic)),
                (None, UNKNOWN_ID),
                (side.name("absent"), UNKNOWN_ID),
                (None, NO_ID),
            ):
                if name is None and version < BY_ID - 2:
                    continue
                asked = MetadataRequestTopic(name=name, topic_id=topic_id)
                request = MetadataRequest(topics=[asked], allow_auto_topic_creation=False)
                what = {side.id_of(topic): "known", NO_ID: "no"}.get(topic_id, "unknown")
                side.ask(request, version, note=f"{name}, {what} id")
        both_ways = [MetadataRequestTopic(topic_id=side.id_of(topic), name=None), MetadataRequestTopic(name=topic)]
        side.ask(MetadataRequest(topics=both_ways, allow_auto_topic_creation=False), note="by name and by id")
        other = MetadataRequestTopic(name=side.topic("other"))
        side.ask(MetadataRequest(topics=[*both_ways, other], allow_auto_topic_creation=False), note="two ways")
        unknown = MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None)
        side.ask(MetadataRequest(topics=[unknown, unknown, *both_ways[:1] * 2]), note="ids twice")

    both.agree(scenario, NAMELESS)


def test_creation(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            name = side.name(f"new-{version}")
            side.ask(MetadataRequest(topics=named(name)), version, note="new")
            side.settle_topic(name, 1)
            side.ask(MetadataRequest(topics=named(name)), version, note="there")
        for version in (4, 12):
            name = side.name(f"never-{version}")
            request = MetadataRequest(topics=named(name), allow_auto_topic_creation=False)
            side.ask(request, version, note="not to be created")
            side.ask(request, version, note="not created")
        side.topic("a.b")
        side.ask(MetadataRequest(topics=named(side.name("a_b"))), 12, note="a name that collides")

    both.agree(scenario, "created when answered")


def test_topics_of_coordinators_are_created(both: Both) -> None:
    def scenario(side: Side) -> None:
        for name in ("__consumer_offsets", "__transaction_state"):
            side.call(MetadataRequest(topics=named(name)), until=lambda answer: not answer.topics[0].error_code)
            (topic,) = side.call(MetadataRequest(topics=named(name), allow_auto_topic_creation=False)).topics
            side.record(name, (topic.is_internal, len(topic.partitions), len(topic.partitions[0].replica_nodes)))
            side.ask(describe(TOPIC, name))

    both.agree(scenario, "no eligible leader replicas")


def test_authorized_operations(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in range(8, 14):
            for of_topic in (False, True):
                for of_cluster in (False, True) if version <= 10 else (False,):
                    request = MetadataRequest(
                        topics=named(topic, "bad name"),
                        allow_auto_topic_creation=False,
                        include_topic_authorized_operations=of_topic,
                        include_cluster_authorized_operations=of_cluster,
                    )
                    side.ask(request, version, note=f"topic {of_topic}, cluster {of_cluster}")

    both.agree(scenario)


def described(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def test_describing_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        a, b, c = side.topic("a", partitions=3), side.topic("b"), side.topic("c", partitions=5)
        absent = side.name("bb")
        side.ask(described(a), note="one")
        side.ask(described(c, a, b), note="out of order")
        side.ask(described(a, a), note="twice")
        side.ask(described(a, absent, c), note="an unknown one")
        for name in BAD_NAMES:
            side.ask(described(name, a), note=f"{name[:10]!r}")
        for limit in (-1, 0, 1, 2, 3, 4, 8, 9, 10, 2**31 - 1):
            side.ask(described(c, a, b, limit=limit), note=f"limit {limit}")
            side.ask(described(c, absent, a, b, limit=limit), note=f"limit {limit} with an unknown one")
            for cursor in ((a, 0), (a, 2), (a, 3), (a, 7), (b, 0), (absent, 0), (c, 4), (c, 5), ("zzz", 0), ("", 0)):
                side.ask(described(c, a, b, limit=limit, cursor=cursor), note=f"limit {limit} from {cursor}")
                side.ask(described(a, absent, limit=limit, cursor=cursor), note=f"limit {limit} from {cursor}, other")
        side.ask(described(a, b, cursor=(a, -1)), note="a negative cursor")

    both.agree(scenario, NAMELESS)


def test_describing_the_cluster(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in range(3):
            for operations in (False, True):
                request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
                side.ask(request, version, note=f"operations {operations}")
            if version >= 1:
                for endpoint_type in (0, 1, 2, 3, -1):
                    request = DescribeClusterRequest(endpoint_type=endpoint_type)
                    side.ask(request, version, note=f"endpoint type {endpoint_type}")
            if version >= 2:
                side.ask(DescribeClusterRequest(include_fenced_brokers=True), version, note="fenced ones too")

    both.agree(scenario)


def test_describing_log_dirs(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, other = side.topic(partitions=3), side.topic("other")
        fill(side, topic, batch(3))

        def asked(name: str, *partitions: int) -> DescribableLogDirTopic:
            return DescribableLogDirTopic(topic=name, partitions=list(partitions))

        for version in range(1, 6):
            for topics in (
                [asked(topic, 0, 1, 2)],
                [asked(topic, 0, 7, -1)],
                [asked(topic, 0, 0)],
                [asked(topic, 0), asked(other, 0)],
                [asked(side.name("absent"), 0)],
                [asked(topic)],
                [],
            ):
                side.ask(DescribeLogDirsRequest(topics=topics), version)
            response = side.call(DescribeLogDirsRequest(topics=None), version)
            for log_dir in response.results:
                log_dir.topics = [found for found in log_dir.topics if found.name in (topic, other)]
            side.record_response(f"DescribeLogDirs v{version} of all topics", response)

    both.agree(scenario)


def test_listing_reassignments(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for topics in (
            None,
            [],
            [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[0, 1, -1])],
            [ListPartitionReassignmentsTopics(name=topic, partition_indexes=[])],
            [ListPartitionReassignmentsTopics(name=side.name("absent"), partition_indexes=[0])],
            [ListPartitionReassignmentsTopics(name="bad name", partition_indexes=[0])],
        ):
            side.ask(ListPartitionReassignmentsRequest(topics=topics, timeout_ms=10_000))

    both.agree(scenario)
