"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

import pytest

from compat_tests.cases import BASE_TIME
from compat_tests.oracle.asking import batch, delete_records, epoch_ends, fetch, fill, list_offsets
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.record import Record

pytestmark = pytest.mark.xdist_group("oracle")

VERSIONS = range(1, 12)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SPECIAL = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD, -7, -100, -(2**63))
TIMES = tuple(BASE_TIME + delta for delta in (-5000, -1, 0, 1, 2, 5, 99, 100, 101, 199, 200, 1000, 10**9))


def lookups(side: Side, topic: str, note: str, versions: range | tuple[int, ...] = VERSIONS) -> None:
    """Every special timestamp and many times, in several versions."""
    for version in versions:
        for timestamp in (*SPECIAL, 0, *TIMES, 2**63 - 1):
            side.ask(list_offsets(topic, timestamp), version, note=f"{timestamp} {note}")


def test_an_empty_topic(both: Both) -> None:
    def scenario(side: Side) -> None:
        lookups(side, side.topic(), "empty")

    both.agree(scenario)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_timestamps(both: Both, codec: str) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        compression = Compression[codec.upper()]
        fill(
            side,
            topic,
            batch(3, start=BASE_TIME, compression=compression),
            batch(3, start=BASE_TIME + 100, step=0, compression=compression),
            batch(3, start=BASE_TIME + 50, compression=compression),
            batch(1, start=BASE_TIME + 200, compression=compression),
            batch(2, start=BASE_TIME + 150, compression=compression),
        )
        lookups(side, topic, codec)
        side.ask(delete_records(topic, 4))
        lookups(side, topic, f"{codec}, from 4 on", (1, 4, 8, 11))
        side.ask(delete_records(topic, -1))
        lookups(side, topic, f"{codec}, all deleted", (1, 11))

    both.agree(scenario)


def test_timestamps_out_of_order_and_absent(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, timeless = side.topic(), side.topic("timeless")
        times = (BASE_TIME + 100, BASE_TIME, BASE_TIME + 200, BASE_TIME + 5, BASE_TIME + 200, BASE_TIME + 1)
        fill(side, topic, build_batch([Record(i, time_ms, None, b"v", []) for i, time_ms in enumerate(times)]))
        fill(side, timeless, batch(3, start=-1, step=0))
        lookups(side, topic, "out of order", (1, 7, 11))
        lookups(side, timeless, "without times", (1, 7, 11))

    both.agree(scenario)


def test_append_time(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(message_timestamp_type="LogAppendTime")
        fill(side, topic, batch(3))
        for version in VERSIONS:
            for timestamp in (*SPECIAL, 0, BASE_TIME, side.now + 10**9):
                side.ask(
                    list_offsets(topic, timestamp), version, note=f"{timestamp - side.now if timestamp > 0 else 0}"
                )

    both.agree(scenario)


def test_many_segments(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(segment_bytes="1048576", index_interval_bytes="1000")
        starts = (0, 100, 50, 300, 200, 300)
        fill(side, topic, *(batch(3, start=BASE_TIME + start, size=150_000) for start in starts))
        for timestamp in (*SPECIAL, *(BASE_TIME + delta for delta in range(-1, 305, 7))):
            side.ask(list_offsets(topic, timestamp), note=f"{timestamp}")
        side.ask(delete_records(topic, 7))
        for timestamp in (*SPECIAL, *(BASE_TIME + delta for delta in range(-1, 305, 7))):
            side.ask(list_offsets(topic, timestamp), note=f"{timestamp} from 7 on")

    both.agree(scenario, "look-up by time after a deletion")


def test_who_asks(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(3))
        for version in (1, 2, 4, 6, 11):
            for replica in (-1, -2, -3, 0, 1, 5):
                for level in (0, 1) if version > 1 else (0,):
                    for timestamp in (LATEST, EARLIEST, BASE_TIME, BASE_TIME + 2):
                        side.ask(
                            list_offsets(topic, timestamp, replica_id=replica, isolation_level=level),
                            version,
                            note=f"replica {replica}, level {level}, {timestamp}",
                        )

    both.agree(scenario)


def test_isolation_levels_that_do_not_exist(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for version in (2, 4, 6, 11):
            for level in (2, -1, 127):
                for timestamp in (LATEST, EARLIEST, BASE_TIME):
                    request = list_offsets(topic, timestamp, isolation_level=level)
                    side.ask(request, version, note=f"level {level}, {timestamp}")

    both.agree(scenario)


def test_leader_epochs(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        fill(side, topic, batch(3))
        for version in (4, 6, 7, 11):
            for epoch in (-(2**31), -2, -1, 0, 1, 7, 2**31 - 1):
                for timestamp in (LATEST, EARLIEST, BASE_TIME):
                    request = list_offsets(topic, timestamp, current_leader_epoch=epoch)
                    side.ask(request, version, note=f"epoch {epoch}, {timestamp}")

    both.agree(scenario)


def test_unknown_topics_and_partitions_and_twice(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)

        def asked(*indexes: int) -> list[ListOffsetsPartition]:
            return [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes]

        for version in VERSIONS:
            for name in (side.name("absent"), "", "bad name"):
                side.ask(list_offsets(name, LATEST), version, note=name)
            for partitions in ([0, 1, 2, -1], [0, 0], [1, 0, 1, 5, 5], []):
                topics = [ListOffsetsTopic(name=topic, partitions=asked(*partitions))]
                side.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version, note=f"{partitions}")
            topics = [ListOffsetsTopic(name=topic, partitions=asked(index)) for index in (0, 1, 0)]
            side.ask(ListOffsetsRequest(replica_id=-1, topics=topics), version, note="a topic thrice")
            side.ask(ListOffsetsRequest(replica_id=-1), version, note="nothing")

    both.agree(scenario)


def test_ends_of_leader_epochs(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, empty = side.topic(partitions=2), side.topic("empty")
        fill(side, topic, batch(3))
        for version in (2, 3, 4):
            for name in (topic, empty):
                for epoch in (-(2**31), -2, -1, 0, 1, 7, 2**31 - 1):
                    side.ask(epoch_ends(name, epoch), version, note=f"{epoch} {name}")
                    for current in (-2, 0, 1, 5):
                        side.ask(epoch_ends(name, epoch, current=current), version, note=f"{epoch} {name} in {current}")
            for partition in (1, 2, -1):
                side.ask(epoch_ends(topic, 0, partition=partition), version, note=f"partition {partition}")
            for name in (side.name("absent"), "", "bad name"):
                side.ask(epoch_ends(name, 0), version, note=name)
            side.ask(epoch_ends(topic), version, note="no partitions")
            side.ask(OffsetForLeaderEpochRequest(), version, note="nothing")
        for version in (3, 4):
            for replica in (-3, -2, -1, 0, 1, 5):
                side.ask(epoch_ends(topic, 0, replica=replica), version, note=f"replica {replica}")

    both.agree(scenario)


def test_deleting_records(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(partitions=2)
        fill(side, topic, batch(5), batch(5))
        for version in range(3):
            for offset in (-(2**63), -2, 11, 2**63 - 1, 0, version + 1, version + 1, 0):
                side.ask(delete_records(topic, offset), version, note=f"{offset}")
            for partition in (1, 2, -1):
                side.ask(delete_records(topic, 0, partition), version, note=f"partition {partition}")
                side.ask(delete_records(topic, 1, partition), version, note=f"1 of partition {partition}")
            for name in (side.name("absent"), "", "bad name", "__transaction_state", "__cluster_metadata"):
                side.ask(delete_records(name, 0), version, note=name)
        side.ask(fetch(side, topic, 3))
        side.ask(delete_records(topic, -1), note="all")
        side.ask(delete_records(topic, -1), note="all again")
        side.ask(delete_records(topic, 5), note="5, when all is deleted")
        side.ask(list_offsets(topic, EARLIEST), note="the start")
        fill(side, topic, batch(1))
        side.ask(fetch(side, topic, 10))

    both.agree(scenario)


def test_deleting_records_of_topics_that_compact(both: Both) -> None:
    def scenario(side: Side) -> None:
        for policy in ("compact", "compact,delete", "delete", ""):
            topic = side.topic(f"policy-{policy.replace(',', '-')}", cleanup_policy=policy)
            fill(side, topic, batch(5))
            for offset in (0, 2, 9):
                side.ask(delete_records(topic, offset), note=f"{offset} {policy}")

    both.agree(scenario)


def test_deleting_records_of_several_topics_and_of_one_twice(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, other = side.topic(partitions=2), side.topic("other")
        fill(side, topic, batch(5))
        fill(side, topic, batch(5), partition=1)
        fill(side, other, batch(5))

        def deleted(name: str, *offsets: tuple[int, int]) -> DeleteRecordsTopic:
            partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
            return DeleteRecordsTopic(name=name, partitions=partitions)

        for version in (0, 2):
            for topics in (
                [deleted(topic, (0, 1), (1, 2), (2, 1)), deleted(other, (0, 1)), deleted(side.name("absent"), (0, 1))],
                [deleted(topic, (0, 2), (0, 3))],
                [deleted(topic, (0, 3)), deleted(topic, (1, 3))],
                [deleted(topic)],
                [],
            ):
                side.ask(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), version)
        for partition in (0, 1):
            side.ask(list_offsets(topic, EARLIEST, partition=partition))

    both.agree(scenario)
