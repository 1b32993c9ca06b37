"""Fetch: offsets, sizes, waiting, epochs, isolation."""

from __future__ import annotations

import pytest

from compat_tests.oracle.asking import batch, delete_records, fetch, fetch_all, fill
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kwire.protocol.records.compression import Compression

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(4, 19)
SOME_VERSIONS = (4, 5, 7, 11, 12, 13, 15, 18)


def test_offsets(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(3), batch(1), batch(6, compression=Compression.LZ4))
        for version in VERSIONS:
            for offset in (-(2**63), -3, -2, -1, 0, 1, 2, 3, 4, 7, 9, 10, 11, 100, 2**63 - 1):
                side.ask(fetch(side, topic, offset, version), version, note=f"from {offset}")

    both.agree(scenario)


def test_offsets_after_a_deletion(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(5), batch(5))
        side.ask(delete_records(topic, 2))
        for version in SOME_VERSIONS:
            for offset in (0, 1, 2, 3, 10, 11):
                side.ask(fetch(side, topic, offset, version), version, note=f"from {offset}")
        side.ask(delete_records(topic, -1))
        for offset in (0, 9, 10, 11):
            side.ask(fetch(side, topic, offset), note=f"from {offset} when all is deleted")

    both.agree(scenario)


def test_an_empty_topic(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in VERSIONS:
            for offset in (-1, 0, 1):
                side.ask(fetch(side, topic, offset, version), version, note=f"from {offset}")

    both.agree(scenario)


def test_unknown_topics_and_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        fill(side, topic, batch(2), partition=1)
        asked = [
            (topic, FetchPartition(partition=1, partition_max_bytes=1000)),
            (topic, FetchPartition(partition=2, partition_max_bytes=1000)),
            (topic, FetchPartition(partition=-1, partition_max_bytes=1000)),
            (side.name("absent"), FetchPartition(partition=0, partition_max_bytes=1000)),
        ]
        for version in VERSIONS:
            side.ask(fetch_all(side, asked, version), version)
            side.ask(fetch_all(side, asked[1:], version, max_wait_ms=20_000, min_bytes=1), version, note="no wait")
            side.ask(fetch_all(side, asked[:0], version), version, note="nothing")
            named = {"topic_id": side.id_of(topic)} if version >= 13 else {"topic": topic}
            side.ask(FetchRequest(topics=[FetchTopic(**named)]), version, note="no partitions")
        for name in ("", "bad name", "__cluster_metadata"):
            side.ask(fetch(side, name, 0, 12), 12, note=repr(name))
        side.ask(FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(partition=0)])]), note="the id zero")

    both.agree(scenario)


def test_a_partition_twice(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(2), batch(2))
        for version in SOME_VERSIONS:
            asked = [
                (topic, FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)) for offset in (0, 2)
            ]
            side.ask(fetch_all(side, asked, version), version)
            side.ask(fetch_all(side, asked, version, session_epoch=0), version, note="with a session")

    both.agree(scenario)


@pytest.mark.parametrize("version", [4, 12, 18])
def test_sizes(both: Both, version: int) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(1, size=1000), batch(1, size=500), batch(1, size=500), batch(1, size=3000))
        for partition_max in (0, 1, 100, 1079, 1080, 1600, 2000, 2300, 100_000, -1, 2**31 - 1):
            for max_bytes in (0, 1, 100, 1079, 1080, 1600, 2000, 2300, 100_000, -1, 2**31 - 1):
                for offset in (0, 1):
                    side.ask(
                        fetch(side, topic, offset, version, partition_max_bytes=partition_max, max_bytes=max_bytes),
                        version,
                        note=f"from {offset}, {partition_max} a partition, {max_bytes} in all",
                    )

    both.agree(scenario)


def test_sizes_over_several_partitions(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=4)
        for partition in range(3):
            fill(side, topic, batch(1, size=1000), batch(1, size=200), partition=partition)
        for max_bytes in (0, 1, 1000, 1100, 1200, 1500, 2300, 2500, 5000):
            for partition_max in (0, 1, 1000, 1100, 2000):
                asked = [
                    (topic, FetchPartition(partition=partition, partition_max_bytes=partition_max))
                    for partition in (3, 1, 0, 2)
                ]
                side.ask(fetch_all(side, asked, max_bytes=max_bytes), note=f"{partition_max}, {max_bytes}")

    both.agree(scenario)


def test_a_fetch_amid_a_compressed_batch_gets_all_of_it(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for codec in Compression:
            fill(side, topic, batch(10, compression=codec))
        for offset in range(0, 50, 3):
            side.ask(fetch(side, topic, offset, partition_max_bytes=300), note=f"from {offset}")

    both.agree(scenario)


def test_several_segments(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(segment_bytes="1048576")
        fill(side, topic, *(batch(2, size=300_000) for _ in range(5)))
        for offset in range(11):
            for max_bytes in (1, 700_000, 1_500_000):
                side.ask(
                    fetch(side, topic, offset, partition_max_bytes=max_bytes, max_bytes=2_000_000),
                    note=f"from {offset}, {max_bytes}",
                )

    both.agree(scenario)


def test_waiting(both: Both) -> None:
    """What must not wait is asked with a time that the tests do not have."""

    def scenario(side: Side) -> None:
        topic, empty = side.topic(), side.topic("empty")
        fill(side, topic, batch(1, size=1000))
        for min_bytes in (0, 1, 1000, -1):
            side.ask(fetch(side, topic, min_bytes=min_bytes, max_wait_ms=60_000), note=f"{min_bytes} bytes are there")
        for min_bytes in (0, -1):
            side.ask(fetch(side, empty, min_bytes=min_bytes, max_wait_ms=60_000), note="nothing is asked for")
        for max_wait_ms in (0, -1, 50):
            side.ask(fetch(side, empty, min_bytes=1, max_wait_ms=max_wait_ms), note=f"for {max_wait_ms} ms")
        side.ask(fetch(side, topic, min_bytes=5000, max_wait_ms=50), note="more than there is")
        side.ask(fetch(side, topic, 7, min_bytes=1, max_wait_ms=60_000), note="out of range")

    both.agree(scenario)


def test_an_append_ends_the_wait(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        for number, version in enumerate((4, 12, 18)):
            asked = [
                (topic, FetchPartition(partition=partition, fetch_offset=number, partition_max_bytes=1000))
                for partition in (0, 1)
            ]
            request = fetch_all(side, asked, version, min_bytes=100, max_wait_ms=60_000)
            side.send(request, version)
            with side.another_connection():
                fill(side, topic, batch(1), partition=0)
                fill(side, topic, batch(1), partition=1)
            side.receive(request, version)

    both.agree(scenario)


def test_leader_epochs(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(3))
        for version in (9, 12, 18):
            for epoch in (-(2**31), -2, -1, 0, 1, 5, 2**31 - 1):
                side.ask(fetch(side, topic, 0, version, current_leader_epoch=epoch), version, note=f"epoch {epoch}")
                side.ask(
                    fetch(side, topic, 50, version, current_leader_epoch=epoch),
                    version,
                    note=f"epoch {epoch}, out of range",
                )

    both.agree(scenario)


def test_the_last_fetched_epoch(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, empty = side.topic(), side.topic("empty")
        fill(side, topic, batch(3))
        for version in (12, 18):
            for name in (topic, empty):
                for epoch in (-2, -1, 0, 1, 5):
                    for offset in (-1, 0, 2, 3, 4, 50):
                        side.ask(
                            fetch(side, name, offset, version, last_fetched_epoch=epoch),
                            version,
                            note=f"epoch {epoch} before {offset} {name}",
                        )

    both.agree(scenario)


def test_isolation_levels(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(3))
        for version in SOME_VERSIONS:
            for level in (0, 1, 2, 7, -1, 127, -128):
                side.ask(fetch(side, topic, 0, version, isolation_level=level), version, note=f"level {level}")
                side.ask(fetch(side, topic, 9, version, isolation_level=level), version, note=f"level {level}, beyond")

    both.agree(scenario)


def test_racks_and_cluster_ids(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(1))
        for version in (11, 12, 18):
            side.ask(fetch(side, topic, 0, version, rack_id="a"), version, note="a rack")
        for version in (12, 18):
            side.ask(fetch(side, topic, 0, version, cluster_id="another"), version, note="another cluster")

    both.agree(scenario)


def test_replicas_that_do_not_exist(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(1))
        for version in (4, 9, 12, 13, 14):
            for replica in (-3, -2, 0, 1, 7):
                for epoch in (-1, 0):
                    request = fetch(side, topic, 0, version, current_leader_epoch=epoch, replica_id=replica)
                    side.ask(request, version, note=f"replica {replica}, epoch {epoch}")
        for replica in (-3, -2, 0, 1, 7):
            for replica_epoch in (-1, 1):
                state = ReplicaState(replica_id=replica, replica_epoch=replica_epoch)
                side.ask(fetch(side, topic, replica_state=state), note=f"replica {replica}, epoch {replica_epoch}")

    both.agree(scenario)
