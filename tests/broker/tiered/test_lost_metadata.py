"""Tiered topics whose log, or whose records of `__remote_log_metadata`, lie in a log dir that is gone."""

from __future__ import annotations

import trio.testing

from kwire.cluster.tiering.metadata import partition_of
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.storage.tiered.remote_segment import TopicIdPartition
from tests.broker.scene import Scene
from tests.broker.tiered.support import SETTINGS, SWITCHED_OFF, TIERED, TieredPlace, configure, fill, until

TOPICS = [f"t{number}" for number in range(12)]
COUNT = int(SETTINGS["rlmm.config.remote.log.metadata.topic.num.partitions"])


async def delete(scene: Scene, *topics: str) -> dict[str, int]:
    """The error codes by topic."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic) for topic in topics], timeout_ms=1000)
    responses = (await scene.call(request)).responses
    assert len(responses) == len(topics)
    return {response.name: response.error_code for response in responses}


async def test_a_topic_is_deleted_only_where_its_objects_can_be_too(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    lost_logs, lost_metadata = set(), set()
    async with place.broker(log_dirs="/one,/two") as scene:
        for topic in TOPICS:
            topic_id = await scene.create(topic, **TIERED)
            await fill(scene, topic, 30)
            if scene.log(topic).log_dir.path == "/two":
                lost_logs.add(topic)
            index = partition_of(TopicIdPartition(topic, topic_id, 0), COUNT)
            if scene.log(REMOTE_LOG_METADATA, index).log_dir.path == "/two":
                lost_metadata.add(topic)
        await until(lambda: all(scene.log(topic).tiered_end_offset > 60 for topic in TOPICS))
    assert lost_logs & lost_metadata
    assert lost_logs - lost_metadata
    assert lost_metadata - lost_logs
    assert set(TOPICS) - lost_logs - lost_metadata

    async with place.broker(log_dirs="/one") as scene:
        expected = {topic: ErrorCode.KAFKA_STORAGE_ERROR if topic in lost_metadata else 0 for topic in TOPICS}
        expected["unknown"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        some, others = TOPICS[::2], [*TOPICS[1::2], "unknown"]
        assert await delete(scene, *some) | await delete(scene, *others) == expected
        lost = min(lost_metadata)
        once, twice = (DeleteTopicState(name=lost),), (DeleteTopicState(name=lost),) * 2
        by_id = DeleteTopicState(name=None, topic_id=scene.id_of(lost))
        for asked, code in (
            (once, ErrorCode.KAFKA_STORAGE_ERROR),
            (twice, ErrorCode.INVALID_REQUEST),
            ((by_id,), ErrorCode.KAFKA_STORAGE_ERROR),
        ):
            response = await scene.call(DeleteTopicsRequest(topics=list(asked), timeout_ms=1000))
            assert [(each.name, each.error_code) for each in response.responses] == [(lost, code)]
        for topic in (given_up := {min(lost_metadata & lost_logs), min(lost_metadata - lost_logs)}):
            await configure(scene, topic, **SWITCHED_OFF)
            assert await delete(scene, topic) == {topic: 0}
        await trio.sleep(30)
    assert {key.split("-")[0] for key in await place.keys()} == lost_metadata

    async with place.broker(log_dirs="/one,/two") as scene:
        for topic in lost_metadata - given_up:
            assert await delete(scene, topic) == {topic: 0}
        await trio.sleep(30)
    assert {key.split("-")[0] for key in await place.keys()} == given_up


async def test_the_topic_of_the_metadata_gets_no_more_partitions(autojump_clock: trio.testing.MockClock) -> None:
    """By their number it is known in which one a partition's records are."""
    async with TieredPlace().broker() as scene:
        await until(lambda: REMOTE_LOG_METADATA in scene.broker.store.image.topics)
        asked = CreatePartitionsTopic(name=REMOTE_LOG_METADATA, count=COUNT + 1, assignments=None)
        response = await scene.call(CreatePartitionsRequest(topics=[asked], timeout_ms=1000))
        assert response.results[0].error_code == ErrorCode.INVALID_REQUEST
        assert len(scene.broker.store.image.topics[REMOTE_LOG_METADATA].partitions) == COUNT
