"""Records of `__remote_log_metadata` that somebody else wrote: nothing keeps a client from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio.testing

from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from kwire.protocol.remote_log_records.serde import encode_record
from tests.broker.scene import Scene
from tests.broker.tiered.support import TIERED, TieredPlace, fill, read_all, until

OF = TopicIdPartitionEntry(name="t", id=bytes(range(16)), partition=0)
SEGMENT = RemoteLogSegmentIdEntry(topic_id_partition=OF, id=bytes(16))
VALUES = {
    "nothing": b"",
    "text": b"hello, world",
    "an unknown type": bytes([1, 9, 0, 0]),
    "an unknown version": bytes([1, 0, 9, 0]),
    "cut off": encode_record(RemoteLogSegmentMetadataRecord(remote_log_segment_id=SEGMENT))[:-9],
    "no leader epochs": encode_record(RemoteLogSegmentMetadataRecord(remote_log_segment_id=SEGMENT, end_offset=9)),
    "an unknown state of a copy": encode_record(
        RemoteLogSegmentMetadataRecord(
            remote_log_segment_id=SEGMENT,
            segment_leader_epochs=[SegmentLeaderEpochEntry()],
            remote_log_segment_state=9,
        )
    ),
    "an unknown state of an update": encode_record(
        RemoteLogSegmentMetadataUpdateRecord(remote_log_segment_id=SEGMENT, remote_log_segment_state=9)
    ),
    "an unknown state of a deletion": encode_record(
        RemotePartitionDeleteMetadataRecord(topic_id_partition=OF, remote_partition_delete_state=9)
    ),
}


async def write(scene: Scene, batch: bytes) -> None:
    """To every partition of the topic."""
    for index in range(3):
        data = [PartitionProduceData(index=index, records=batch)]
        request = ProduceRequest(
            acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=REMOTE_LOG_METADATA, partition_data=data)]
        )
        response = await scene.call(request, 9)
        assert response.responses[0].partition_responses[0].error_code == 0


def of_value(value: bytes) -> Callable[[], bytes]:
    return lambda: build_batch([Record(0, 0, None, value, [])])


def without_records() -> bytes:
    """A batch that says that it has many records, but has something else."""
    batch = build_batch([Record(number, 0, None, b"x" * 3000, []) for number in range(100)])
    return seal(read_header(batch), bytes(len(batch) - HEADER_SIZE)) + bytes(len(batch) - HEADER_SIZE)


@pytest.mark.parametrize(
    "batch",
    [*map(of_value, VALUES.values()), without_records],
    ids=[*VALUES, "no records"],
)
async def test_what_makes_no_sense_is_passed_over(
    batch: Callable[[], bytes], autojump_clock: trio.testing.MockClock
) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await write(scene, batch())
        await scene.create("t", **TIERED)
        values = await fill(scene, "t", 30)
        await until(lambda: scene.log("t").local_start_offset >= 60)
        await write(scene, batch())
    async with place.broker() as scene:
        await until(lambda: scene.log("t").tiered_end_offset >= 60)
        assert await read_all(scene, "t") == list(enumerate(values))
