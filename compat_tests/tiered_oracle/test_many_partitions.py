"""Fetches of several partitions, some of them in remote storage, and those of replicas."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import delete_records, fetch, fetch_all, fill, list_offsets
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from compat_tests.tiered_oracle.stages import (
    BATCH_BYTES,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST_TIERED,
    SEGMENT,
    TIERED,
    fill_segments,
    some,
    wait_for,
)
from kwire.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kwire.protocol.messages.fetch import FetchPartition, ReplicaState

pytestmark = pytest.mark.xdist_group("tiered oracle")

SEGMENTS = 3
COPIED = SEGMENTS * SEGMENT


def make(side: Side) -> tuple[str, str]:
    """A topic with two partitions that are mostly remote and one without records, and one that is not tiered."""
    topic, plain = side.topic(partitions=3, **TIERED, local_retention_bytes="1"), side.topic("plain")
    fill(side, plain, *map(some, range(3)))
    for partition in (0, 1):
        fill_segments(side, topic, SEGMENTS, partition=partition)
        wait_for(side, topic, {LATEST_TIERED: COPIED - 1, EARLIEST_LOCAL: COPIED}, partition)
    return topic, plain


def of(partition: int, offset: int, most: int = 1 << 20) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=most)


def test_several_partitions(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic, plain = make(side)
        cases = {
            "both remote": [(topic, of(0, 0)), (topic, of(1, 7))],
            "both remote, little": [(topic, of(0, 0, 1)), (topic, of(1, 7, 1))],
            "remote, local": [(topic, of(0, 0)), (topic, of(1, COPIED))],
            "local, remote": [(topic, of(0, COPIED)), (topic, of(1, 0))],
            "remote, empty": [(topic, of(0, 0)), (topic, of(2, 0))],
            "remote, too far": [(topic, of(0, 0)), (topic, of(2, 5))],
            "remote, another topic": [(topic, of(1, 3)), (plain, of(0, 1))],
            "another topic, remote": [(plain, of(0, 1)), (topic, of(1, 3))],
        }
        for note, asked in cases.items():
            for most in (1 << 20, 5 * BATCH_BYTES // 2, BATCH_BYTES, 1):
                side.ask(fetch_all(side, asked, max_bytes=most), note=f"{note}, {most} bytes")
            for version in (4, 12):
                side.ask(fetch_all(side, asked, version), version, note=note)

    tiered.agree(scenario)


def test_who_fetches(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic, _ = make(side)
        for replica in (-3, -2, 1, 2):
            for offset in (0, 7, COPIED, COPIED + 3, COPIED + 4):
                state = ReplicaState(replica_id=replica, replica_epoch=-1)
                side.ask(fetch(side, topic, offset, replica_state=state), note=f"{replica} at {offset}")
            for timestamp in (-1, -2, -3, -4, -5, -6, 0):
                request = list_offsets(topic, timestamp, replica_id=replica)
                side.ask(request, note=f"{replica} {timestamp}")
        for epoch in (0, 1):
            for offset in (0, 7, COPIED):
                request = fetch(side, topic, offset, current_leader_epoch=epoch)
                side.ask(request, note=f"in {epoch} at {offset}")
                request = fetch(side, topic, offset, last_fetched_epoch=epoch)
                side.ask(request, note=f"after {epoch} at {offset}")

    tiered.agree(scenario)


def test_what_is_on_the_disk(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        topic, _ = make(side)
        asked = [DescribableLogDirTopic(topic=topic, partitions=[0, 1, 2])]
        side.ask(DescribeLogDirsRequest(topics=asked))
        side.ask(delete_records(topic, COPIED + 1))
        wait_for(side, topic, {EARLIEST: COPIED + 1})
        side.ask(DescribeLogDirsRequest(topics=asked), note="records deleted")

    tiered.agree(scenario)
