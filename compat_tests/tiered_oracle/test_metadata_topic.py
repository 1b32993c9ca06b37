"""`__remote_log_metadata`: the topic, and what is written to it in the life of a topic."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import TOPIC, delete_records, describe
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.tiered_oracle.metadata_topic import Story, tell
from compat_tests.tiered_oracle.stages import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST_TIERED,
    READ_ONLY,
    RECORDS,
    SEGMENT,
    TIERED,
    fill_segments,
    set_configs,
    wait_for,
)
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.xdist_group("tiered oracle")

COPY = ["COPY_STARTED", "COPY_FINISHED"]
DELETE = ["DELETE_STARTED", "DELETE_FINISHED"]
SEGMENTS = 3
COPIED = SEGMENTS * SEGMENT


def copied(story: Story) -> bool:
    return story.states() == [COPY] * SEGMENTS


def test_the_topic(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        side.settle_topic(REMOTE_LOG_METADATA, 1)
        for version in (8, 12, 13):
            topics = [MetadataRequestTopic(name=REMOTE_LOG_METADATA)]
            side.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), version)
        side.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=REMOTE_LOG_METADATA)]))
        side.ask(describe(TOPIC, REMOTE_LOG_METADATA, synonyms=True))

    tiered.agree(scenario, "remote log metadata is flushed")


def test_more_partitions(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        side.settle_topic(REMOTE_LOG_METADATA, 1)
        topic = CreatePartitionsTopic(name=REMOTE_LOG_METADATA, count=2, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)
        side.ask(request, note="more metadata")

    tiered.agree(scenario, "more partitions for `__remote_log_metadata`")


def test_copies_and_the_end_of_a_topic(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2, **TIERED)
        topic_id = side.id_of(topic)
        fill_segments(side, topic, SEGMENTS)
        tell(side, topic_id, copied, "copied")
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
        side.ask(request)

        def gone(story: Story) -> bool:
            return story.states() == [COPY + DELETE] * SEGMENTS and all(
                any("FINISHED" in one for one in told) for told in story.partition.values()
            )

        tell(side, topic_id, gone, "topic deleted")

    tiered.agree(scenario, "deleted partitions in remote log metadata")


def test_expiry(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(**TIERED, local_retention_bytes="1")
        topic_id = side.id_of(topic)
        fill_segments(side, topic, SEGMENTS)
        wait_for(side, topic, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED})
        side.call(delete_records(topic, SEGMENT + 1))
        tell(side, topic_id, lambda story: story.states() == [COPY + DELETE, COPY, COPY], "records deleted")
        set_configs(side, topic, {"retention_ms": "3600000"})
        # The active segment has expired too: it is sealed, copied and deleted.
        wait_for(side, topic, {EARLIEST: COPIED + RECORDS})
        tell(side, topic_id, lambda story: story.states() == [COPY + DELETE] * (SEGMENTS + 1), "expired")

    tiered.agree(scenario)


def test_no_more_copies(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(**TIERED, local_retention_bytes="1")
        topic_id = side.id_of(topic)
        fill_segments(side, topic, SEGMENTS)
        wait_for(side, topic, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED})
        set_configs(side, topic, {**READ_ONLY, "local_retention_bytes": "-2"})
        end = COPIED + RECORDS + fill_segments(side, topic, SEGMENTS)
        wait_for(side, topic, {-1: end, LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED, EARLIEST: 0})
        set_configs(side, topic, {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"})
        wait_for(side, topic, {EARLIEST: COPIED, EARLIEST_LOCAL: COPIED})
        tell(side, topic_id, lambda story: story.states() == [COPY + DELETE] * SEGMENTS, "switched off")
        set_configs(side, topic, {"remote_storage_enable": "true", "remote_log_copy_disable": "false"})
        wait_for(side, topic, {LATEST_TIERED: end - SEGMENT - 1})
        tell(side, topic_id, lambda story: len(story.segments) == 2 * SEGMENTS, "switched on again")

    tiered.agree(scenario)


def test_no_cleanup_policy(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(**TIERED, cleanup_policy="", local_retention_bytes="1")
        fill_segments(side, topic, SEGMENTS)
        wait_for(side, topic, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED})
        tell(side, side.id_of(topic), copied, "copied")
        set_configs(side, topic, {"retention_bytes": "1900"})
        tell(side, side.id_of(topic), lambda story: story.states() == [COPY + DELETE, COPY, COPY], "expired")

    tiered.agree(scenario)
