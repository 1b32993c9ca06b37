"""Requests to the controller that leave it no time: nothing is done, as with Apache Kafka."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.scene import running

NEW = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
MORE = CreatePartitionsTopic(name="t", count=2, assignments=None)


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
async def test_what_has_no_time_is_not_done(timeout_ms: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        created = await scene.call(CreateTopicsRequest(topics=[NEW], timeout_ms=timeout_ms))
        assert [topic.error_code for topic in created.topics] == [ErrorCode.REQUEST_TIMED_OUT]
        grown = await scene.call(CreatePartitionsRequest(topics=[MORE], timeout_ms=timeout_ms))
        assert [topic.error_code for topic in grown.results] == [ErrorCode.REQUEST_TIMED_OUT]
        deleted = await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=timeout_ms))
        assert [topic.error_code for topic in deleted.responses] == [ErrorCode.REQUEST_TIMED_OUT]
        assert {name: len(topic.partitions) for name, topic in scene.broker.store.image.topics.items()} == {"t": 1}


async def test_a_little_time_is_enough(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        created = await scene.call(CreateTopicsRequest(topics=[NEW], timeout_ms=1))
        assert created.topics[0].error_code == 0
        grown = await scene.call(CreatePartitionsRequest(topics=[MORE], timeout_ms=1))
        assert grown.results[0].error_code == 0
        deleted = await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1))
        assert deleted.responses[0].error_code == 0
