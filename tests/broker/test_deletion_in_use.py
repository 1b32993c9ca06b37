"""A topic is deleted, and made again, while it is produced to and fetched from."""

from __future__ import annotations

import trio

from kwire.client.connection import Connection
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from tests.broker.scene import Scene, running
from tests.records import simple_records

GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
PARTITIONS = 3


async def produce(connection: Connection, seen: set[ErrorCode], now_ms: int) -> None:
    blob = build_batch(simple_records([(None, b"x" * 100)], now_ms))
    data = [PartitionProduceData(index=index, records=blob) for index in range(PARTITIONS)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    while True:
        response = await connection.call(request, 12)
        seen.update(ErrorCode(each.error_code) for each in response.responses[0].partition_responses)
        await trio.sleep(0.01)


async def fetch(connection: Connection, seen: set[ErrorCode]) -> None:
    """From the log's end, so that most requests wait there when the topic is deleted."""
    offsets = [0] * PARTITIONS
    while True:
        asked = [
            FetchPartition(partition=i, fetch_offset=at, partition_max_bytes=1 << 20) for i, at in enumerate(offsets)
        ]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic="t", partitions=asked)],
        )
        response = await connection.call(request, 12)
        for each in response.responses[0].partitions:
            seen.add(ErrorCode(each.error_code))
            offsets[each.partition_index] = max(each.high_watermark, 0)
        await trio.sleep(0.003)


async def delete(scene: Scene) -> None:
    (result,) = (
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    ).responses
    assert result.error_code == 0


async def test_who_uses_a_deleted_topic_is_told_so_and_its_files_go(autojump_clock, caplog) -> None:
    async with running() as scene:
        produced: set[ErrorCode] = set()
        fetched: set[ErrorCode] = set()
        async with trio.open_nursery() as nursery:
            await scene.create("t", PARTITIONS, file_delete_delay_ms="5000", segment_bytes="1048576")
            for _ in range(2):
                nursery.start_soon(produce, await scene.another_connection(), produced, scene.broker.clock.wall_ms())
                nursery.start_soon(fetch, await scene.another_connection(), fetched)
            for _ in range(5):
                await trio.sleep(0.2)
                await delete(scene)
                await trio.sleep(0.1)
                await scene.create("t", PARTITIONS, file_delete_delay_ms="5000")
            await trio.sleep(0.2)
            await delete(scene)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert ErrorCode.NONE in produced
        assert produced - {ErrorCode.NONE} <= GONE
        assert produced & GONE
        assert ErrorCode.NONE in fetched
        assert fetched - {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE} <= GONE  # the new topic is shorter
        assert fetched & GONE
        (folder,) = (log_dir.path for log_dir in scene.broker.logs.dirs)
        assert any(name.startswith("t-") for name in scene.files.list(folder))
        await trio.sleep(5)
        assert not any(name.startswith("t-") for name in scene.files.list(folder))
        assert scene.broker.logs.dirs[0].online
    assert [record for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []
