"""OffsetCommit, OffsetFetch and OffsetDelete on a broker in memory."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kwire.broker.apis import offset_commit as api
from kwire.cluster.leader_log import LeaderLog
from kwire.coordinator.groups.offsets import commit as offset_commit
from kwire.metadata.image import MetadataImage
from kwire.ports.stepping import HERE
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kwire.security.authorizer import Operation
from tests.broker.apis.groups import GROUP, commit_request, find
from tests.broker.scene import Scene, running


async def commit(scene: Scene, offsets: dict[tuple[str, int], int], group: str = GROUP) -> list[tuple[str, int, int]]:
    """(topic, partition, code), in the order of the answer."""
    response = await scene.call(commit_request(offsets, group), 9)
    return [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


async def fetched(scene: Scene, topics: dict[str, list[int]] | None = None, version: int = 9, **options: Any) -> Any:
    asked = None
    if topics is not None:
        asked = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=asked)
    (answer,) = (await scene.call(OffsetFetchRequest(groups=[group], **options), version)).groups
    assert not answer.error_code
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code).name
        if partition.error_code
        else partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
    }


async def test_a_client_that_commits_again_and_again_needs_no_task(autojump_clock, monkeypatch) -> None:
    stepped: list[bool] = []

    def noting(machine, who, request, now):
        stepped.append(HERE.stepping)
        return offset_commit.commit(machine, who, request, now)

    async with running() as scene:
        await scene.create("topic", 1)
        await find(scene)
        monkeypatch.setattr(api, "commit", noting)
        for offset in range(3):
            assert await commit(scene, {("topic", 0): offset}) == [("topic", 0, 0)]
        assert await fetched(scene) == {("topic", 0): 2}
    assert stepped == [False, True, True]


@pytest.mark.parametrize("require_stable", [False, True])
async def test_offsets_are_there_after_a_restart(require_stable: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        await find(scene)
        assert await commit(scene, {("topic", 0): 5, ("topic", 1): 6}) == [("topic", 0, 0), ("topic", 1, 0)]
        files = scene.files
    async with running(files=files) as scene:
        assert await fetched(scene, require_stable=require_stable) == {("topic", 0): 5, ("topic", 1): 6}


async def test_what_the_coordinators_log_does_not_take(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        await scene.create("t")
        await find(scene)

        async def refuse(*arguments: Any, **options: Any) -> int:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)

        monkeypatch.setattr(LeaderLog, "append", refuse)
        assert await commit(scene, {("t", 0): 1}) == [("t", 0, ErrorCode.UNKNOWN_SERVER_ERROR)]


async def test_what_is_not_there_is_answered_with_what_is(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await find(scene)
        partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in (0, 1, -1)]
        request = OffsetCommitRequest(
            group_id=GROUP, topics=[OffsetCommitRequestTopic(name="topic", partitions=partitions)]
        )
        (topic,) = (await scene.call(request, 9)).topics
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [(told.partition_index, told.error_code) for told in topic.partitions] == [
            (1, unknown),
            (-1, unknown),
            (0, 0),
        ]
        assert await commit(scene, {("absent", 0): 1}) == [("absent", 0, unknown)]


async def test_topics_by_id(autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("topic")
        await find(scene)
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
        topics = [
            OffsetCommitRequestTopic(topic_id=topic_id, partitions=partitions),
            OffsetCommitRequestTopic(topic_id=b"nobody's id 1234", partitions=partitions),
        ]
        response = await scene.call(OffsetCommitRequest(group_id=GROUP, topics=topics), 10)
        assert {topic.topic_id: topic.partitions[0].error_code for topic in response.topics} == {
            topic_id: 0,
            b"nobody's id 1234": ErrorCode.UNKNOWN_TOPIC_ID,
        }
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
        (answer,) = (await scene.call(OffsetFetchRequest(groups=[group]), 10)).groups
        assert [(topic.topic_id, topic.partitions[0].committed_offset) for topic in answer.topics] == [(topic_id, 5)]


async def test_a_new_topic_of_the_same_name_begins_anew(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await scene.create("other")
        await find(scene)
        await commit(scene, {("topic", 0): 5, ("other", 0): 6})
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="topic")], timeout_ms=1000))
        await scene.create("topic")
        assert await fetched(scene) == {("other", 0): 6}


async def test_what_is_committed_for_a_topic_that_is_going_does_not_stay(autojump_clock) -> None:
    """What was committed for it is gone already, and the metadata that clients are shown have it still."""
    async with running() as scene:
        await scene.create("topic")
        await find(scene)
        await commit(scene, {("topic", 0): 5})
        another = await scene.another_connection()
        late: list[int] = []

        async def commit_late(before: MetadataImage, after: MetadataImage) -> None:
            if "topic" in before.topics and "topic" not in after.topics:
                response = await another.call(commit_request({("topic", 0): 7}), 9)
                late.append(response.topics[0].partitions[0].error_code)

        scene.broker.store.subscribe(commit_late)
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="topic")], timeout_ms=1000))
        assert late == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await scene.create("topic")
        assert await fetched(scene) == {}
        assert await commit(scene, {("topic", 0): 9}) == [("topic", 0, 0)]


async def test_groups_and_topics_that_may_not_be_read(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await scene.create("secret")
        await find(scene)
        await commit(scene, {("topic", 0): 5, ("secret", 0): 6})
        await scene.allow(Operation.READ, Operation.DESCRIBE, Operation.DELETE, names=[GROUP, "topic"])
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await commit(scene, {("secret", 0): 7, ("topic", 0): 8}) == [("secret", 0, refused), ("topic", 0, 0)]
        assert await fetched(scene) == {("topic", 0): 8}
        assert await fetched(scene, {"topic": [0], "secret": [0]}) == {("topic", 0): 8, ("secret", 0): refused.name}
        topics = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
            for name in ("topic", "secret")
        ]
        response = await scene.call(OffsetDeleteRequest(group_id=GROUP, topics=topics))
        assert {topic.name: topic.partitions[0].error_code for topic in response.topics} == {
            "topic": 0,
            "secret": refused,
        }
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await commit(scene, {("topic", 0): 1}, "other") == [("topic", 0, code)]
        assert (await scene.call(OffsetDeleteRequest(group_id="other", topics=topics))).error_code == code


@pytest.mark.parametrize("version", [1, 2, 7, 8])
async def test_a_group_that_may_not_be_described_in_old_versions(version: int, autojump_clock) -> None:
    async with running() as scene:
        await find(scene)
        await scene.allow(Operation.DESCRIBE, names=["other"])
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if version >= 8:
            group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
            (answer,) = (await scene.call(OffsetFetchRequest(groups=[group]), version)).groups
            assert answer.error_code == code
            return
        topics = [OffsetFetchRequestTopic(name="topic", partition_indexes=[0, 1])]
        response = await scene.call(OffsetFetchRequest(group_id=GROUP, topics=topics), version)
        if version == 1:  # without a place for it elsewhere
            (topic,) = response.topics
            assert [partition.error_code for partition in topic.partitions] == [code, code]
        else:
            assert (response.error_code, response.topics) == (code, [])


async def test_followers_that_are_not_heard_of_hold_up_a_deletion_once_for_all_groups(autojump_clock) -> None:
    async with running({"offsets.topic.num.partitions": "4", "offsets.commit.timeout.ms": "5000"}) as scene:
        await scene.create("t")
        for number in range(12):
            await find(scene, f"g{number}")
            assert await commit(scene, {("t", 0): 1}, f"g{number}") == [("t", 0, 0)]
        for partition in range(4):
            assert scene.log("__consumer_offsets", partition).log_end_offset
            await scene.place("__consumer_offsets", 1, 2, partition=partition)
        began = trio.current_time()
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=60_000)
        assert (await scene.call(request)).responses[0].error_code == 0
        assert trio.current_time() - began == pytest.approx(5, abs=1)
