"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ListGroups, DescribeGroups, DeleteGroups on a broker in memory."""

from __future__ import annotations

import pytest
import trio

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kwire.protocol.messages.sync_group import SyncGroupRequest
from kwire.security.authorizer import Operation
from tests.broker.apis.groups import GROUP, commit_request, find, heartbeat_request, join, join_request
from tests.broker.scene import running


async def test_a_group_from_the_first_member_to_its_end(autojump_clock) -> None:
    async with running() as scene:
        joined = await join(scene)
        assert (await scene.call(heartbeat_request(joined))).error_code == 0
        (listed,) = (await scene.call(ListGroupsRequest())).groups
        assert (listed.group_id, listed.protocol_type, listed.group_state) == (GROUP, "consumer", "Stable")
        (described,) = (await scene.call(DescribeGroupsRequest(groups=[GROUP]))).groups
        (member,) = described.members
        assert (member.member_id, bytes(member.member_assignment)) == (joined.member_id, b"all")
        assert member.client_host == "/client"
        (refused,) = (await scene.call(DeleteGroupsRequest(groups_names=[GROUP]))).results
        assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
        leaving = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=joined.member_id)])
        assert (await scene.call(leaving)).members[0].error_code == 0
        (deleted,) = (await scene.call(DeleteGroupsRequest(groups_names=[GROUP]))).results
        assert deleted.error_code == 0
        assert (await scene.call(ListGroupsRequest())).groups == []


async def test_a_join_waits_without_keeping_others_of_another_connection(autojump_clock) -> None:
    async with running({"group.initial.rebalance.delay.ms": "3000"}) as scene:
        await find(scene)
        other = await scene.another_connection()
        asked = await scene.call(join_request())
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.call, join_request(asked.member_id))
            await trio.sleep(1)
            (described,) = (await other.call(DescribeGroupsRequest(groups=[GROUP]))).groups
            assert described.group_state == "PreparingRebalance"
            assert trio.current_time() - started < 3
        assert 3 <= trio.current_time() - started < 4


async def test_a_member_that_is_silent_is_out_and_the_group_is_there_after_a_restart(autojump_clock) -> None:
    async with running() as scene:
        joined = await join(scene)
        files = scene.files
    async with running(files=files) as scene:
        await trio.sleep(9)
        assert (await scene.call(heartbeat_request(joined))).error_code == 0
        await trio.sleep(11)
        assert (await scene.call(heartbeat_request(joined))).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_sync_says_its_protocol_from_version_five_on(autojump_clock) -> None:
    async with running() as scene:
        await find(scene)
        request = SyncGroupRequest(group_id=GROUP, member_id="m", generation_id=1)
        assert (await scene.call(request, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await scene.call(request, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_where_nobody_coordinates(autojump_clock) -> None:
    """No topic of the coordinators is there yet."""
    async with running() as scene:
        await scene.create("topic")
        code = ErrorCode.NOT_COORDINATOR
        assert (await scene.call(join_request())).error_code == code
        assert (await scene.call(HeartbeatRequest(group_id=GROUP, member_id="m", generation_id=1))).error_code == code
        committed = await scene.call(commit_request({("topic", 0): 1}), 9)
        assert committed.topics[0].partitions[0].error_code == code
        for stable in (False, True):
            asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP)], require_stable=stable)
            assert (await scene.call(asked)).groups[0].error_code == code
        assert (await scene.call(DescribeGroupsRequest(groups=[GROUP]))).groups[0].error_code == code
        assert (await scene.call(DeleteGroupsRequest(groups_names=[GROUP]))).results[0].error_code == code
        assert (await scene.call(ListGroupsRequest())).groups == []


@pytest.mark.parametrize("coordinates", [True, False])
async def test_what_is_wrong_with_a_request_is_told_by_whoever_is_asked(coordinates: bool, autojump_clock) -> None:
    async with running() as scene:
        if coordinates:
            await find(scene)
        for options, code in (
            ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
            ({"session_timeout_ms": 5999}, ErrorCode.INVALID_SESSION_TIMEOUT),
            ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ):
            refused = await scene.call(join_request("me", **options))
            assert (refused.error_code, refused.member_id, refused.protocol_name) == (code, "me", None)
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        for request in (
            SyncGroupRequest(group_id="", member_id="m", generation_id=1, **named),
            HeartbeatRequest(group_id="", member_id="m", generation_id=1),
            LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="m")]),
        ):
            assert (await scene.call(request)).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [0, 6, 7, 9])
async def test_groups_that_may_not_be_read(version: int, autojump_clock) -> None:
    async with running() as scene:
        joined = await join(scene)
        await scene.allow(Operation.READ, names=["another"])
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        refused = await scene.call(join_request(), version)
        assert (refused.error_code, refused.member_id) == (code, "")
        assert refused.protocol_name == (None if version >= 7 else "")
        assert (await scene.call(heartbeat_request(joined))).error_code == code
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        request = SyncGroupRequest(group_id=GROUP, member_id=joined.member_id, generation_id=1, **named)
        assert (await scene.call(request)).error_code == code
        members = [MemberIdentity(member_id=joined.member_id)]
        assert (await scene.call(LeaveGroupRequest(group_id=GROUP, members=members))).error_code == code


async def test_groups_that_may_not_be_described_or_deleted(autojump_clock) -> None:
    async with running() as scene:
        await join(scene)
        await scene.call(commit_request({}, "mine"), 9)
        await scene.allow(Operation.DESCRIBE, Operation.DELETE, names=["mine"])
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        response = await scene.call(DescribeGroupsRequest(groups=[GROUP, "mine"], include_authorized_operations=True))
        assert {group.group_id: group.error_code for group in response.groups} == {
            GROUP: code,
            "mine": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        response = await scene.call(DeleteGroupsRequest(groups_names=[GROUP, "mine"]))
        assert {result.group_id: result.error_code for result in response.results} == {
            GROUP: code,
            "mine": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        assert (await scene.call(ListGroupsRequest())).groups == []
        await scene.allow(Operation.DESCRIBE)
        assert [group.group_id for group in (await scene.call(ListGroupsRequest())).groups] == [GROUP]
