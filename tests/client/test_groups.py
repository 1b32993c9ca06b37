"""Groups and their offsets: what is asked of whom, in old and new versions, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.client.group_offsets import CommittedOffset, commit_offsets, committed_offsets, delete_offsets
from kwire.client.groups import GroupDescription, GroupListing, GroupMember, Groups
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages import consumer_group_describe, describe_groups
from kwire.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
    TopicPartitions,
)
from kwire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kwire.protocol.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kwire.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kwire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kwire.protocol.version_prefixed import encode_version_prefixed
from tests.client.scripted_broker import PORT, ScriptedBroker, metadata


@pytest.fixture
def groups(client) -> Groups:
    return Groups(client)


@pytest.fixture
async def broker(broker: ScriptedBroker) -> ScriptedBroker:
    """The broker, which coordinates every group."""
    broker.on(FindCoordinatorRequest, found)
    return broker


def found(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Broker 1 coordinates everything."""
    assert request.key_type == 0
    coordinators = [Coordinator(key=key, node_id=1, host="broker", port=PORT) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=coordinators)


def codes(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


# What there is


async def test_groups_of_all_brokers(groups, broker, network, nursery) -> None:
    other = ScriptedBroker(network.transport("other"), "other")
    await nursery.start(other.run)
    brokers = {1: ("broker", PORT), 2: ("other", PORT)}
    broker.on(MetadataRequest, metadata({}, brokers))
    first = ListedGroup(group_id="b", protocol_type="consumer", group_state="Stable", group_type="classic")
    second = ListedGroup(group_id="a", protocol_type="consumer", group_state="Empty", group_type="consumer")
    broker.on(ListGroupsRequest, ListGroupsResponse(groups=[first]))
    other.on(ListGroupsRequest, ListGroupsResponse(groups=[second]))
    assert await groups.list_all() == [
        GroupListing("a", "consumer", "consumer", "Empty"),
        GroupListing("b", "classic", "consumer", "Stable"),
    ]


async def test_an_old_broker_tells_less(groups, broker) -> None:
    listed = ListGroupsResponse(groups=[ListedGroup(group_id="a", protocol_type="consumer")])
    broker.on(ListGroupsRequest, listed, versions=(0, 2))
    assert await groups.list_all() == [GroupListing("a", "", "consumer", "")]


async def test_a_broker_that_still_loads_is_asked_again(groups, broker, autojump_clock) -> None:
    loading = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    broker.on(ListGroupsRequest, [loading, ListGroupsResponse()])
    assert await groups.list_all() == []


# One group


def consumer_group(error: int = 0, **fields: Any) -> ConsumerGroupDescribeResponse:
    group = consumer_group_describe.DescribedGroup(group_id="g", error_code=error, **fields)
    return ConsumerGroupDescribeResponse(groups=[group])


def classic_group(error: int = 0, **fields: Any) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[describe_groups.DescribedGroup(group_id="g", error_code=error, **fields)])


async def test_a_group_of_the_consumer_protocol(groups, broker) -> None:
    partitions = TopicPartitions(topic_name="t", partitions=[0, 1])
    member = Member(
        member_id="m",
        instance_id="i",
        client_id="c",
        client_host="/h",
        assignment=Assignment(topic_partitions=[partitions]),
        target_assignment=Assignment(),
    )
    broker.on(
        ConsumerGroupDescribeRequest,
        consumer_group(group_state="Stable", assignor_name="uniform", members=[member]),
    )
    description = await groups.describe("g")
    expected = GroupMember("m", "i", "c", "/h", (("t", 0), ("t", 1)))
    assert description == GroupDescription("g", "consumer", "Stable", "consumer", "uniform", 1, (expected,))
    assert description.active


@pytest.mark.parametrize("refusal", [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, None])
async def test_a_group_of_the_classic_protocol(groups, broker, refusal: ErrorCode | None) -> None:
    """It is none of the consumer protocol, or the broker does not know (None) or not allow that protocol."""
    if refusal is not None:
        broker.on(ConsumerGroupDescribeRequest, consumer_group(refusal))
    assigned = [TopicPartition(topic="t", partitions=[1]), TopicPartition(topic="u", partitions=[0])]
    assignment = encode_version_prefixed(ConsumerProtocolAssignment(assigned_partitions=assigned), 3)
    members = [
        DescribedGroupMember(member_id="m", client_id="c", client_host="/h", member_assignment=assignment),
        DescribedGroupMember(member_id="new", client_id="c", client_host="/h"),
        DescribedGroupMember(member_id="odd", client_id="c", client_host="/h", member_assignment=b"\0"),
    ]
    broker.on(
        DescribeGroupsRequest,
        classic_group(group_state="Stable", protocol_type="consumer", protocol_data="range", members=members),
    )
    description = await groups.describe("g")
    assert description[:6] == ("g", "classic", "Stable", "consumer", "range", 1)
    assert [member.assignment for member in description.members] == [(("t", 1), ("u", 0)), (), ()]


async def test_assignments_of_others_than_consumers_are_not_read(groups, broker) -> None:
    members = [DescribedGroupMember(member_id="m", client_id="c", client_host="/h", member_assignment=bytes(6))]
    broker.on(DescribeGroupsRequest, classic_group(protocol_type="connect", members=members))
    (member,) = (await groups.describe("g")).members
    assert member.assignment == ()


@pytest.mark.parametrize(("error", "state"), [(ErrorCode.GROUP_ID_NOT_FOUND, "Dead"), (ErrorCode.NONE, "Dead")])
async def test_a_group_that_does_not_exist(groups, broker, error: ErrorCode, state: str) -> None:
    """Old brokers call it dead."""
    broker.on(ConsumerGroupDescribeRequest, consumer_group(ErrorCode.GROUP_ID_NOT_FOUND))
    broker.on(DescribeGroupsRequest, classic_group(error, group_state=state))
    with pytest.raises(KafkaError) as caught:
        await groups.describe("g")
    assert codes(caught) is ErrorCode.GROUP_ID_NOT_FOUND


async def test_who_may_not(groups, broker) -> None:
    broker.on(ConsumerGroupDescribeRequest, consumer_group(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(KafkaError) as caught:
        await groups.describe("g")
    assert codes(caught) is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_delete(groups, broker) -> None:
    broker.on(DeleteGroupsRequest, DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=0)]))
    await groups.delete("g")
    assert [request.groups_names for request in broker.got(DeleteGroupsRequest)] == [["g"]]
    refused = DeletableGroupResult(group_id="g", error_code=ErrorCode.NON_EMPTY_GROUP)
    broker.on(DeleteGroupsRequest, DeleteGroupsResponse(results=[refused]))
    with pytest.raises(KafkaError) as caught:
        await groups.delete("g")
    assert codes(caught) is ErrorCode.NON_EMPTY_GROUP


# Finding the coordinator


async def test_a_coordinator_that_comes_and_moves(groups, broker, autojump_clock) -> None:
    """Not there yet, then one that is it no longer, then the right one."""
    none = Coordinator(key="g", node_id=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message="soon")
    broker.on(FindCoordinatorRequest, [FindCoordinatorResponse(coordinators=[none]), found])
    moved = DeletableGroupResult(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    done = DeletableGroupResult(group_id="g", error_code=0)
    broker.on(DeleteGroupsRequest, [DeleteGroupsResponse(results=[result]) for result in (moved, done)])
    await groups.delete("g")
    assert len(broker.got(FindCoordinatorRequest)) == 3
    assert len(broker.got(DeleteGroupsRequest)) == 2
    await groups.delete("g")
    assert len(broker.got(FindCoordinatorRequest)) == 3, "it was known"


async def test_an_old_broker_is_asked_for_one_key(groups, broker) -> None:
    def one(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        assert request.key == "g"
        return FindCoordinatorResponse(node_id=1, host="broker", port=PORT)

    broker.on(FindCoordinatorRequest, one, versions=(0, 3))
    broker.on(DeleteGroupsRequest, DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=0)]))
    await groups.delete("g")


# Offsets


async def test_committed_offsets(groups, broker) -> None:
    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        (group,) = request.groups
        assert (group.group_id, group.topics) == ("g", None)
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=1, committed_offset=7, committed_leader_epoch=3, metadata="m", error_code=0
            ),
            OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata=None, error_code=0),
            OffsetFetchResponsePartitions(partition_index=2, committed_offset=-1, metadata="", error_code=0),
        ]
        topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=0)])

    broker.on(OffsetFetchRequest, answer)
    expected = {("t", 0): CommittedOffset(5, -1, ""), ("t", 1): CommittedOffset(7, 3, "m")}
    assert await committed_offsets(groups, "g") == expected
    assert [version for version, request in broker.requests if isinstance(request, OffsetFetchRequest)] == [9]


async def test_committed_offsets_of_an_old_broker(groups, broker) -> None:
    def answer(request: OffsetFetchRequest) -> OffsetFetchResponse:
        assert (request.group_id, request.topics) == ("g", None)
        partition = OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="", error_code=0)
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[partition])])

    broker.on(OffsetFetchRequest, answer, versions=(1, 5))
    assert await committed_offsets(groups, "g") == {("t", 0): CommittedOffset(5, -1, "")}


async def test_why_there_are_no_committed_offsets(groups, broker) -> None:
    refused = OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    broker.on(OffsetFetchRequest, OffsetFetchResponse(groups=[refused]))
    with pytest.raises(KafkaError) as caught:
        await committed_offsets(groups, "g")
    assert codes(caught) is ErrorCode.GROUP_AUTHORIZATION_FAILED


def committed(error: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=error)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])


async def test_commit_as_nobody(groups, broker) -> None:
    broker.on(OffsetCommitRequest, committed(0))
    await commit_offsets(groups, "g", {("t", 0): 5, ("t", 1): 6, ("u", 0): 7})
    (request,) = broker.got(OffsetCommitRequest)
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
    asked = {topic.name: [(each.partition_index, each.committed_offset) for each in topic.partitions]
             for topic in request.topics}  # fmt: skip
    assert asked == {"t": [(0, 5), (1, 6)], "u": [(0, 7)]}


async def test_commit_refused(groups, broker) -> None:
    broker.on(OffsetCommitRequest, committed(ErrorCode.UNKNOWN_MEMBER_ID))
    with pytest.raises(KafkaError, match="'g', t-0") as caught:
        await commit_offsets(groups, "g", {("t", 0): 5})
    assert codes(caught) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("whole", [True, False])
async def test_delete_offsets(groups, broker, whole: bool) -> None:
    broker.on(OffsetDeleteRequest, OffsetDeleteResponse())
    await delete_offsets(groups, "g", [("t", 0), ("t", 2), ("u", 1)])
    (request,) = broker.got(OffsetDeleteRequest)
    asked = {topic.name: [each.partition_index for each in topic.partitions] for topic in request.topics}
    assert asked == {"t": [0, 2], "u": [1]}
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    partition = OffsetDeleteResponsePartition(partition_index=0, error_code=code)
    refused = OffsetDeleteResponseTopic(name="t", partitions=[partition])
    broker.on(OffsetDeleteRequest, OffsetDeleteResponse(error_code=code if whole else 0, topics=[refused]))
    with pytest.raises(KafkaError) as caught:
        await delete_offsets(groups, "g", [("t", 0)])
    assert codes(caught) is code
