"""Members of classic groups on a broker in memory."""

from __future__ import annotations

from typing import Any

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.broker.scene import Scene

GROUP = "group"


async def find(scene: Scene, group: str = GROUP) -> None:
    """Has the coordinators' topic created."""
    response = await scene.call(FindCoordinatorRequest(key=group), 3)
    assert not response.error_code, response


def join_request(member_id: str = "", **options: Any) -> JoinGroupRequest:
    fields = {
        "group_id": GROUP,
        "member_id": member_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range")],
    }
    return JoinGroupRequest(**(fields | options))


async def join(scene: Scene, **options: Any) -> JoinGroupResponse:
    """A member that is alone in its group, and has its assignment."""
    await find(scene)
    asked = await scene.call(join_request(**options))
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = await scene.call(join_request(asked.member_id, **options))
    assert not joined.error_code
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")],
    )
    synced = await scene.call(request)
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
    assert isinstance(joined, JoinGroupResponse)
    return joined


def heartbeat_request(joined: JoinGroupResponse) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id)


def commit_request(offsets: dict[tuple[str, int], int], group: str = GROUP, **options: Any) -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            name=topic, partitions=[OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)]
        )
        for (topic, index), offset in offsets.items()
    ]
    return OffsetCommitRequest(**({"group_id": group, "topics": topics} | options))
