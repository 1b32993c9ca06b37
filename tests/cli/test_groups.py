"""`kwire groups`, against a scripted broker that coordinates one group, g."""

from __future__ import annotations

import json
import time

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kwire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kwire.protocol.messages.describe_groups import DescribedGroup as ClassicGroup
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kwire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kwire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kwire.protocol.messages.list_offsets import ListOffsetsRequest
from kwire.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kwire.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.client.test_client import listed

FIRST, END = 998, 999
"""The offsets of both partitions of topic t, as `listed` answers."""


def described(*members: Member, error: int = 0) -> ConsumerGroupDescribeResponse:
    state = "Stable" if members else "Empty"
    group = DescribedGroup(
        group_id="g", error_code=error, group_state=state, assignor_name="uniform", members=list(members)
    )
    return ConsumerGroupDescribeResponse(groups=[group])


def member(name: str, *partitions: int) -> Member:
    assigned = [TopicPartitions(topic_name="t", partitions=list(partitions))] if partitions else []
    return Member(
        member_id=name,
        client_id=f"client-{name}",
        client_host="/10.0.0.1",
        assignment=Assignment(topic_partitions=assigned),
        target_assignment=Assignment(),
    )


def fetched(**offsets: int) -> OffsetFetchResponse:
    """Committed offsets, by topic and number (`t0`)."""
    topics = [
        OffsetFetchResponseTopics(
            name=where[:-1],
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=int(where[-1]), committed_offset=offset, metadata="note", error_code=0
                )
            ],
        )
        for where, offset in offsets.items()
    ]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=0)])


@pytest.fixture
def coordinator(broker):
    """The broker, which is the coordinator of an empty group that is at offset 990 of t-0."""
    broker.on(
        FindCoordinatorRequest,
        lambda request: FindCoordinatorResponse(
            coordinators=[Coordinator(key="g", node_id=1, host=broker.host, port=broker.port)]
        ),
    )
    broker.on(ConsumerGroupDescribeRequest, described())
    broker.on(OffsetFetchRequest, fetched(t0=998))
    broker.on(ListOffsetsRequest, listed)
    broker.on(OffsetCommitRequest, OffsetCommitResponse())
    return broker


def test_list(kwire_at, broker) -> None:
    groups = [
        ListedGroup(group_id="b", protocol_type="connect", group_state="Stable", group_type="classic"),
        ListedGroup(group_id="a", protocol_type="consumer", group_state="Empty", group_type="consumer"),
    ]
    broker.on(ListGroupsRequest, ListGroupsResponse(groups=groups))
    assert kwire_at("groups", "list").stdout == "a\tconsumer\tconsumer\tEmpty\nb\tclassic\tconnect\tStable\n"
    first = json.loads(kwire_at("groups", "list", "--format", "json").stdout)[0]
    assert first == {"id": "a", "type": "consumer", "protocol_type": "consumer", "state": "Empty"}


def test_describe(kwire_at, coordinator) -> None:
    """Partitions with an offset and no member, with a member and no offset; a member without a partition."""
    coordinator.on(ConsumerGroupDescribeRequest, described(member("m", 1), member("idle")))
    assert kwire_at("groups", "describe", "g").stdout.splitlines() == [
        "g\tt\t0\t998\t999\t1\t\t\t",
        "g\tt\t1\t\t999\t\tm\t/10.0.0.1\tclient-m",
        "g\t\t\t\t\t\tidle\t/10.0.0.1\tclient-idle",
    ]
    assert kwire_at("groups", "describe", "--members", "g").stdout.splitlines() == [
        "g\tidle\t\t/10.0.0.1\tclient-idle\t",
        "g\tm\t\t/10.0.0.1\tclient-m\tt:1",
    ]
    (group,) = json.loads(kwire_at("groups", "describe", "g", "--format", "json").stdout)
    assert (group["group"], group["type"], group["state"], group["protocol"]) == ("g", "consumer", "Stable", "uniform")
    assert group["offsets"][0] == {
        "topic": "t",
        "partition": 0,
        "offset": 998,
        "end_offset": 999,
        "lag": 1,
        "metadata": "note",
        "member": None,
    }
    assert group["members"][1] == {
        "id": "m",
        "instance_id": None,
        "client_id": "client-m",
        "host": "/10.0.0.1",
        "partitions": [{"topic": "t", "partition": 1}],
    }


def test_describe_offsets_of_what_is_gone(kwire_at, coordinator) -> None:
    coordinator.on(OffsetFetchRequest, fetched(gone0=5, t9=6))
    assert kwire_at("groups", "describe", "g").stdout == "g\tgone\t0\t5\t\t\t\t\t\ng\tt\t9\t6\t\t\t\t\t\n"


def missing(coordinator) -> None:
    coordinator.on(ConsumerGroupDescribeRequest, described(error=ErrorCode.GROUP_ID_NOT_FOUND))
    dead = ClassicGroup(group_id="g", group_state="Dead", error_code=0)
    coordinator.on(DescribeGroupsRequest, DescribeGroupsResponse(groups=[dead]))


def test_describe_what_is_not_there(kwire_at, coordinator) -> None:
    missing(coordinator)
    result = kwire_at("groups", "describe", "g")
    assert result.exit_code == 1
    assert result.stderr == "kwire: GROUP_ID_NOT_FOUND: group 'g' (not there: `kwire groups list` shows what is)\n"


def committed(broker) -> list[dict[tuple[str, int], int]]:
    return [
        {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in request.topics
            for partition in topic.partitions
        }
        for request in broker.got(OffsetCommitRequest)
    ]


def test_a_reset_is_shown_before_it_is_done(kwire_at, coordinator) -> None:
    expected = "g\tt\t0\t998\t999\ng\tt\t1\t\t999\n"
    for dry in ([], ["--dry-run"]):
        assert kwire_at("groups", "reset-offsets", "g", "-t", "t", "--to-latest", *dry).stdout == expected
    assert committed(coordinator) == []
    result = kwire_at("groups", "reset-offsets", "g", "-t", "t", "--to-latest", "--execute")
    assert (result.exit_code, result.stdout) == (0, expected)
    assert committed(coordinator) == [{("t", 0): 999, ("t", 1): 999}]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--topic", "t:1", "--to-earliest"], {("t", 1): FIRST}),
        (["--topic", "t:1,0", "--to-earliest"], {("t", 0): FIRST, ("t", 1): FIRST}),
        (["--all-topics", "--to-current"], {("t", 0): 998}),
        (["--all-topics", "--to-offset", "999"], {("t", 0): 999}),
        (["--all-topics", "--shift-by", "1"], {("t", 0): 999}),
        (["--all-topics", "--shift-by", "-0"], {("t", 0): 998}),
        (["--all-topics", "--to-datetime", "1970-01-01"], {("t", 0): 999}),
    ],
)
def test_where_to_reset(kwire_at, coordinator, options: list[str], offsets: dict[tuple[str, int], int]) -> None:
    assert kwire_at("groups", "reset-offsets", "g", "--execute", *options).exit_code == 0
    assert committed(coordinator) == [offsets]


def test_so_long_ago(kwire_at, coordinator) -> None:
    before = int(time.time() * 1000)
    assert kwire_at("groups", "reset-offsets", "g", "--all-topics", "--by-duration", "PT1H").exit_code == 0
    after = int(time.time() * 1000)
    times = [request.topics[0].partitions[0].timestamp for request in coordinator.got(ListOffsetsRequest)]
    (asked,) = [each for each in times if each >= 0]
    assert before <= asked + 3_600_000 <= after


def test_an_offset_that_is_not_there(kwire_at, coordinator) -> None:
    result = kwire_at("groups", "reset-offsets", "g", "--all-topics", "--to-offset", "5", "--format", "json")
    assert result.stderr == "kwire: t-0 has no offset 5, 998 is the nearest\n"
    assert json.loads(result.stdout) == [{"topic": "t", "partition": 0, "old": 998, "new": 998}]


def test_a_reset_of_a_group_with_members(kwire_at, coordinator) -> None:
    coordinator.on(ConsumerGroupDescribeRequest, described(member("m", 1)))
    result = kwire_at("groups", "reset-offsets", "g", "--all-topics", "--to-earliest", "--execute")
    assert result.exit_code == 1
    assert result.stderr == ("kwire: the offsets of group 'g' can't be set while it has members; its state is Stable\n")
    assert committed(coordinator) == []


def test_a_reset_of_a_group_that_is_not_there_makes_it(kwire_at, coordinator) -> None:
    missing(coordinator)
    coordinator.on(OffsetFetchRequest, fetched())
    assert kwire_at("groups", "reset-offsets", "g", "-t", "t:0", "--to-earliest", "--execute").exit_code == 0
    assert committed(coordinator) == [{("t", 0): FIRST}]
    result = kwire_at("groups", "reset-offsets", "g", "--all-topics", "--to-earliest")
    assert result.stderr == "kwire: group 'g' has no offsets; name topics with --topic\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--to-latest"], "say which topics: --topic TOPIC or --all-topics"),
        (["-t", "t", "--all-topics", "--to-latest"], "say which topics: --topic TOPIC or --all-topics"),
        (["-t", "t"], "say where to, once: --to-earliest"),
        (["-t", "t", "--to-latest", "--to-offset", "0"], "say where to, once: --to-earliest"),
        (["-t", "t", "--to-datetime", "noon"], "--to-datetime: noon: must be ms since the epoch"),
        (["-t", "t", "--by-duration", "1h"], "--by-duration: 1h: must be a duration like"),
        (["-t", "t:x", "--to-latest"], "--topic t:x: must be TOPIC or TOPIC:0,1,2"),
    ],
)
def test_resets_that_make_no_sense(kwire_at, coordinator, options: list[str], complaint: str) -> None:
    result = kwire_at("groups", "reset-offsets", "g", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"kwire: {complaint}")


def test_partitions_that_are_not_there(kwire_at, coordinator) -> None:
    result = kwire_at("groups", "reset-offsets", "g", "-t", "t:2", "--to-latest")
    assert result.exit_code == 1
    assert result.stderr.startswith("kwire: UNKNOWN_TOPIC_OR_PARTITION: partition 2 of topic 't'")


def test_delete(kwire_at, coordinator) -> None:
    def answer(code: ErrorCode) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g", error_code=code)])

    coordinator.on(DeleteGroupsRequest, answer(ErrorCode.NONE))
    assert kwire_at("groups", "delete", "g", "h").exit_code == 0
    assert [request.groups_names for request in coordinator.got(DeleteGroupsRequest)] == [["g"], ["h"]]
    coordinator.on(DeleteGroupsRequest, answer(ErrorCode.NON_EMPTY_GROUP))
    result = kwire_at("groups", "delete", "g", "--if-exists")
    assert result.stderr == "kwire: NON_EMPTY_GROUP: group 'g' (its members have to leave first)\n"
    coordinator.on(DeleteGroupsRequest, answer(ErrorCode.GROUP_ID_NOT_FOUND))
    assert kwire_at("groups", "delete", "g").exit_code == 1
    assert kwire_at("groups", "delete", "g", "--if-exists").exit_code == 0


def test_delete_offsets(kwire_at, coordinator) -> None:
    coordinator.on(OffsetDeleteRequest, OffsetDeleteResponse())
    assert kwire_at("groups", "delete-offsets", "g", "-t", "t:1", "--topic", "t:0").exit_code == 0
    (request,) = coordinator.got(OffsetDeleteRequest)
    asked = {topic.name: [each.partition_index for each in topic.partitions] for topic in request.topics}
    assert asked == {"t": [1, 0]}
