"""ConsumerGroupHeartbeat, ConsumerGroupDescribe and what other APIs say of such groups, on a broker in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
import trio

from kwire.metadata.changes import FeatureLevelsChanged
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from kwire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene, running

T = TypeVar("T")

GROUP = "group"


async def beat(scene: Scene, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_id": "m", "member_epoch": 0, **fields})
    response = await scene.call(request, version)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


async def join(scene: Scene, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    await scene.call(FindCoordinatorRequest(key=GROUP), 3)
    joining = {"rebalance_timeout_ms": 10000, "subscribed_topic_names": ["topic"], "topic_partitions": []}
    return await beat(scene, **{**joining, **fields})


async def describe(scene: Scene, *groups: str) -> list[DescribedGroup]:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups or (GROUP,)), include_authorized_operations=True)
    response = await scene.call(request)
    return response.groups


async def until(is_so: Callable[[T], bool], ask: Callable[[], Awaitable[T]]) -> T:
    """The first answer that is as it should be."""
    with trio.fail_after(60):
        while True:
            answer = await ask()
            if is_so(answer):
                return answer
            await trio.sleep(0.01)


async def assigned(scene: Scene, epoch: int) -> list[tuple[bytes, list[int]]]:
    """What a member that has nothing yet is told to read, once it is."""
    answer = await until(
        lambda answer: answer.assignment is not None,
        lambda: beat(scene, member_epoch=epoch, topic_partitions=[]),
    )
    assert answer.assignment is not None
    return [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions]


async def test_a_member_joins_and_is_described(autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("topic", 2)
        joined = await join(scene, instance_id="static", rack_id="rack")
        assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
        assert joined.assignment is not None
        assert [(each.topic_id, each.partitions) for each in joined.assignment.topic_partitions] == [(topic_id, [0, 1])]
        (group,) = await describe(scene)
        assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Stable", 2, 2)
        assert group.assignor_name == "uniform"
        assert group.authorized_operations > 0
        (member,) = group.members
        assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "static", "rack", 2)
        assert (member.subscribed_topic_names, member.member_type) == (["topic"], 1)
        for assignment in (member.assignment, member.target_assignment):
            assert [(each.topic_name, each.partitions) for each in assignment.topic_partitions] == [("topic", [0, 1])]


async def test_what_is_no_consumer_group_is_not_described(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await join(scene)
        (empty, missing) = await describe(scene, "", "missing")
        assert (empty.error_code, empty.error_message) == (ErrorCode.INVALID_GROUP_ID, None)
        assert (missing.error_code, missing.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group missing not found.",
        )


async def test_regular_expressions_are_resolved_behind_the_answer(autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("topic")
        await scene.create("other")
        joined = await join(scene, subscribed_topic_names=[], subscribed_topic_regex="to.*")
        assert joined.assignment is not None
        assert joined.assignment.topic_partitions == []
        assert await assigned(scene, joined.member_epoch) == [(topic_id, [0])]


async def test_new_partitions_are_assigned(autojump_clock) -> None:
    async with running({"group.consumer.assignment.interval.ms": "0"}) as scene:
        topic_id = await scene.create("topic", 1)
        joined = await join(scene)
        await scene.call(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="topic", count=2, assignments=None)], timeout_ms=1000
            )
        )
        has = [TopicPartitions(topic_id=topic_id, partitions=[0])]
        answer = await beat(scene, member_epoch=joined.member_epoch, topic_partitions=has)
        assert answer.assignment is not None
        assert answer.assignment.topic_partitions[0].partitions == [0, 1]


async def test_a_silent_member_is_out(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await join(scene)
        await until(lambda groups: groups[0].group_state == "Empty", lambda: describe(scene))


async def test_the_group_is_there_after_a_restart(autojump_clock) -> None:
    files = MemoryFileSystem()
    async with running(files=files) as scene:
        await scene.create("topic", 2)
        joined = await join(scene)
        before = await describe(scene)
    async with running(files=files) as scene:
        await scene.call(FindCoordinatorRequest(key=GROUP), 3)
        after = await until(
            lambda groups: groups[0].error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, lambda: describe(scene)
        )
        assert after == before
        assert (await beat(scene, member_epoch=joined.member_epoch)).error_code == 0


async def test_what_admins_see(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await join(scene)
        (listed,) = (await scene.call(ListGroupsRequest(types_filter=["consumer"]))).groups
        assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
            GROUP,
            "consumer",
            "Stable",
            "consumer",
        )
        assert (await scene.call(ListGroupsRequest(types_filter=["classic"]))).groups == []
        (described,) = (await scene.call(DescribeGroupsRequest(groups=[GROUP]))).groups
        assert (described.error_code, described.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group group is not a classic group.",
        )
        (deleted,) = (await scene.call(DeleteGroupsRequest(groups_names=[GROUP]))).results
        assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP
        await beat(scene, member_epoch=-1)
        (deleted,) = (await scene.call(DeleteGroupsRequest(groups_names=[GROUP]))).results
        assert deleted.error_code == 0
        assert (await scene.call(ListGroupsRequest())).groups == []


class TestOffsets:
    async def commit(self, scene: Scene, epoch: int, member_id: str = "m", version: int = 9) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        request = OffsetCommitRequest(
            group_id=GROUP,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name="topic", partitions=[partition])],
        )
        response = await scene.call(request, version)
        return response.topics[0].partitions[0].error_code

    async def fetch(self, scene: Scene, epoch: int, member_id: str | None = "m") -> tuple[int, int]:
        topic = OffsetFetchRequestTopics(name="topic", partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=[topic])
        (answer,) = (await scene.call(OffsetFetchRequest(groups=[group]), 9)).groups
        return answer.error_code, answer.topics[0].partitions[0].committed_offset if answer.topics else -1

    async def test_a_member_commits_in_its_epoch(self, autojump_clock) -> None:
        async with running() as scene:
            await scene.create("topic")
            await join(scene)
            assert await self.commit(scene, 2) == 0
            assert await self.commit(scene, 3) == ErrorCode.STALE_MEMBER_EPOCH
            assert await self.commit(scene, 1) == ErrorCode.STALE_MEMBER_EPOCH
            assert await self.commit(scene, 2, "stranger") == ErrorCode.UNKNOWN_MEMBER_ID
            assert await self.commit(scene, 2, version=8) == ErrorCode.UNSUPPORTED_VERSION
            assert await self.fetch(scene, 2) == (0, 7)
            assert await self.fetch(scene, -1, None) == (0, 7)
            assert await self.fetch(scene, 1) == (ErrorCode.STALE_MEMBER_EPOCH, -1)
            assert await self.fetch(scene, 2, "stranger") == (ErrorCode.UNKNOWN_MEMBER_ID, -1)

    async def test_what_it_has_it_may_commit_in_an_older_epoch(self, autojump_clock) -> None:
        async with running({"group.consumer.assignment.interval.ms": "0"}) as scene:
            topic_id = await scene.create("topic", 1)
            await join(scene)
            await scene.call(
                CreatePartitionsRequest(
                    topics=[CreatePartitionsTopic(name="topic", count=2, assignments=None)], timeout_ms=1000
                )
            )
            has = [TopicPartitions(topic_id=topic_id, partitions=[0])]
            assert (await beat(scene, member_epoch=2, topic_partitions=has)).member_epoch == 3
            assert await self.commit(scene, 2) == 0


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST, "InstanceId can't be empty."),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1},
            ErrorCode.INVALID_REQUEST,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            {"topic_partitions": None},
            ErrorCode.INVALID_REQUEST,
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            ErrorCode.INVALID_REQUEST,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST, "InstanceId can't be null."),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
        (
            {"server_assignor": "sticky"},
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
        ),
        (
            {"subscribed_topic_regex": "("},
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "SubscribedTopicRegex `(` is not a valid regular expression: missing closing ).",
        ),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND, "Consumer group group not found."),
    ],
)
async def test_refusals(fields: dict[str, Any], code: ErrorCode, message: str, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        response = await join(scene, **fields)
        assert (response.error_code, response.error_message) == (code, message)


async def test_what_one_may_not_describe_one_may_not_subscribe_to(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await scene.call(FindCoordinatorRequest(key=GROUP), 3)
        await scene.allow(Operation.READ, names=[GROUP])
        assert (await join(scene)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_what_one_may_not_describe_is_not_matched(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("secret")
        topic_id = await scene.create("open")
        await scene.allow(Operation.READ, Operation.DESCRIBE, names=[GROUP, "open"])
        joined = await join(scene, subscribed_topic_names=[], subscribed_topic_regex=".*")
        assert await assigned(scene, joined.member_epoch) == [(topic_id, [0])]


async def test_who_may_not_describe_a_topic_is_not_told_of_the_group(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await join(scene)
        await scene.allow(Operation.DESCRIBE, names=[GROUP])
        (group,) = await describe(scene)
        assert group.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert group.members == []


async def test_a_broker_may_do_without(autojump_clock) -> None:
    async with running({"group.coordinator.rebalance.protocols": "classic"}) as scene:
        assert (await join(scene)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await describe(scene))[0].error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_cluster_may_do_without(autojump_clock) -> None:
    async with running() as scene:
        await scene.broker.store.commit([FeatureLevelsChanged({"group.version": 0})])
        assert (await join(scene)).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert (await describe(scene))[0].error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_member_too_large_for_the_log(autojump_clock) -> None:
    async with running() as scene:
        names = [f"{number:0>200}" for number in range(6000)]
        answer = await join(scene, subscribed_topic_names=names)
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert (await describe(scene))[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
