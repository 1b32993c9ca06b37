"""Tiered topics whose log, or whose records of `__remote_log_metadata`, lie in a log dir that is gone."""

from __future__ import annotations

import trio.testing

from kwire.cluster.tiering.metadata import partition_of
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.storage.tiered.remote_segment import TopicIdPartition
from tests.broker.scene import Scene
from tests.broker.tiered.support import SETTINGS, TIERED, TieredPlace, fill, until

TOPIC = 2
"""Among the kinds of resources."""

TOPICS = [f"t{number}" for number in range(12)]
COUNT = int(SETTINGS["rlmm.config.remote.log.metadata.topic.num.partitions"])


async def delete(scene: Scene, topic: str) -> int:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000)
    return (await scene.call(request)).responses[0].error_code


async def switch_off_remote_storage(scene: Scene, topic: str) -> None:
    values = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in values.items()]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    response = await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == 0, response


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
        for topic in TOPICS:
            expected = ErrorCode.KAFKA_STORAGE_ERROR if topic in lost_metadata else 0
            assert (topic, await delete(scene, topic)) == (topic, expected)
        for topic in (given_up := {min(lost_metadata & lost_logs), min(lost_metadata - lost_logs)}):
            await switch_off_remote_storage(scene, topic)
            assert await delete(scene, topic) == 0
        await trio.sleep(30)
    assert {key.split("-")[0] for key in await place.keys()} == lost_metadata

    async with place.broker(log_dirs="/one,/two") as scene:
        for topic in lost_metadata - given_up:
            assert await delete(scene, topic) == 0
        await trio.sleep(30)
    assert {key.split("-")[0] for key in await place.keys()} == given_up
