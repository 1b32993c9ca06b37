"""Members of classic groups, in few words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from compat_tests.oracle.sides import PATIENCE, POLL, Side
from compat_tests.oracle.wire import response_type_of
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.list_groups import ListGroupsRequest
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kwire.protocol.schema import Message
from kwire.protocol.version_prefixed import encode_version_prefixed

PREPARING = "PreparingRebalance"
GROUPS_FROM, BY_ID_FROM = 8, 10
"""Versions of OffsetFetch that name several groups, and topics by id; the latter is OffsetCommit's too."""
INSTANCES_FROM = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3, OffsetCommitRequest: 7}
"""The versions that know group.instance.id."""


def settle_groups(side: Side) -> None:
    """Waits until there is a group coordinator, which Apache Kafka creates when somebody looks for it."""
    side.call(
        FindCoordinatorRequest(coordinator_keys=["any"]), until=lambda found: not found.coordinators[0].error_code
    )
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="any", topics=None)])
    side.call(request, 8, until=lambda answer: not answer.groups[0].error_code)


def await_group(side: Side, group: str, state: str, members: int) -> None:
    """Waits until the group is so, which the requests on the clients' connections bring about."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = side.call(DescribeGroupsRequest(groups=[group])).groups[0]
        if (found.group_state, len(found.members)) == (state, members):
            return
        assert time.monotonic() < deadline, found
        time.sleep(POLL)


def subscription(*topics: str) -> bytes:
    """What a consumer tells its leader."""
    return encode_version_prefixed(ConsumerProtocolSubscription(topics=list(topics)), 1)


SUBSCRIPTION = subscription()


class Client:
    """A client in a group, on a connection of its own: what it asks goes into the side's transcript."""

    def __init__(self, side: Side, group: str, name: str, *, instance_id: str | None = None) -> None:
        self.side = side
        self.group = group
        self.name = name
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1
        self.wire = side.connect(name)
        self._waiting: list[tuple[Message, int]] = []

    def ask(self, request: Message, version: int | None = None, note: str = "") -> Any:
        self.start(request, version)
        return self.finish(note)

    def start(self, request: Message, version: int | None = None) -> None:
        """Sends a request whose answer `finish` waits for."""
        version = request.max_version if version is None else version
        self.wire.send(request, version)
        self._waiting.append((request, version))

    def finish(self, note: str = "") -> Any:
        request, version = self._waiting.pop(0)
        response = self.wire.receive(response_type_of(request), version)
        name = type(request).__name__.removesuffix("Request")
        self.side.record_response(f"{self.name} {name} v{version} {note}".rstrip(), response)
        return response

    # Joining

    def join(self, version: int = 9, **options: Any) -> Any:
        self.start_join(version, **options)
        return self.joined()

    def start_join(self, version: int = 9, **options: Any) -> None:
        """Sends a JoinGroup, the second one where the id comes first."""
        request = self.join_request(version, **options)
        if version >= 4 and not request.member_id and request.group_instance_id is None:
            self.start(request, version)
            response = self.finish("without an id")
            assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED, response
            self.id = request.member_id = response.member_id
        self.start(request, version)

    def joined(self, note: str = "") -> Any:
        response = self.finish(note)
        if not response.error_code:
            self.id, self.generation = response.member_id, response.generation_id
        return response

    def join_request(
        self, version: int = 9, *, protocols: Sequence[str] = ("range",), metadata: bytes = SUBSCRIPTION, **options: Any
    ) -> JoinGroupRequest:
        fields = {
            "group_id": self.group,
            "member_id": self.id,
            "group_instance_id": self.instance_id if version >= INSTANCES_FROM[JoinGroupRequest] else None,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000 if version else -1,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
        }
        return JoinGroupRequest(**(fields | options))

    # What a member does

    def sync(self, assignment: dict[Client, bytes] | None = None, version: int = 5, **options: Any) -> Any:
        return self.ask(self.sync_request(assignment, version, **options), version)

    def sync_request(
        self, assignment: dict[Client, bytes] | None = None, version: int = 5, **options: Any
    ) -> SyncGroupRequest:
        fields = self._member(SyncGroupRequest, version) | {
            "protocol_type": "consumer" if version >= 5 else None,
            "protocol_name": "range" if version >= 5 else None,
            "assignments": [
                SyncGroupRequestAssignment(member_id=client.id, assignment=data)
                for client, data in (assignment or {}).items()
            ],
        }
        return SyncGroupRequest(**(fields | options))

    def heartbeat(self, version: int = 4, note: str = "", **options: Any) -> Any:
        return self.ask(HeartbeatRequest(**(self._member(HeartbeatRequest, version) | options)), version, note)

    def leave(self, version: int = 5, note: str = "") -> Any:
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group, member_id=self.id)
        else:
            identity = MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)
            request = LeaveGroupRequest(group_id=self.group, members=[identity])
        return self.ask(request, version, note)

    def commit(self, topic: str, offset: int, version: int = 9, note: str = "", **options: Any) -> Any:
        fields = self._member(OffsetCommitRequest, version)
        fields["generation_id_or_member_epoch"] = fields.pop("generation_id")
        request = commit_request(self.side, self.group, {topic: [(0, offset)]}, version, **(fields | options))
        return self.ask(request, version, note)

    def _member(self, request: type[Message], version: int) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "member_id": self.id,
            "generation_id": self.generation,
            "group_instance_id": self.instance_id if version >= INSTANCES_FROM[request] else None,
        }


def stable(*clients: Client) -> None:
    """The clients, in this order, become a stable group that the first one leads."""
    leader, *others = clients
    leader.join()
    if others:
        for client in others:
            client.start_join()
        await_group(leader.side, leader.group, PREPARING, len(clients))
        leader.join()
        for client in others:
            client.joined()
    for client in others:
        client.start(client.sync_request())
    leader.sync({client: client.name.encode() for client in clients})
    for client in others:
        client.finish()


def commit_request(
    side: Side,
    group: str,
    offsets: dict[str, list[tuple[int, int]]],
    version: int = 9,
    *,
    metadata: str | None = "",
    leader_epoch: int = -1,
    **options: Any,
) -> OffsetCommitRequest:
    """Of (partition, offset) by topic."""
    topics = [
        OffsetCommitRequestTopic(
            **({"topic_id": side.id_of(topic)} if version >= BY_ID_FROM else {"name": topic}),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=offset,
                    committed_metadata=metadata,
                    committed_leader_epoch=leader_epoch,
                )
                for index, offset in partitions
            ],
        )
        for topic, partitions in offsets.items()
    ]
    return OffsetCommitRequest(**({"group_id": group, "topics": topics} | options))


def fetch_offsets(
    side: Side,
    group: str,
    topics: dict[str, list[int]] | None,
    version: int = 9,
    *,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """Of partitions by topic, or of all topics."""
    if version < GROUPS_FROM:
        asked = (
            None
            if topics is None
            else [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
        )
        return OffsetFetchRequest(group_id=group, topics=asked, require_stable=require_stable)
    named = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(
                **({"topic_id": side.id_of(name)} if version >= BY_ID_FROM else {"name": name}),
                partition_indexes=indexes,
            )
            for name, indexes in topics.items()
        ]
    )
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=named)], require_stable=require_stable
    )


def list_groups(side: Side, prefix: str, version: int, note: str, **options: list[str]) -> None:
    """Those of this scenario alone."""
    response = side.call(ListGroupsRequest(**options), version)
    response.groups = [group for group in response.groups if group.group_id.startswith(prefix)]
    side.record_response(f"ListGroups v{version} ({note})", response)
