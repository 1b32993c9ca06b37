"""Members of classic groups, as their clients behave."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.groups import requests
from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.runtime.outcome import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.coordinator.groups.desk import Desk, client

GROUP = "group"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Member:
    """A client of one group. What waits is kept; `joined` and `synced` give the answers once they are there."""

    def __init__(
        self,
        desk: Desk,
        *,
        instance_id: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        version: int = 9,
        protocol_type: str = "consumer",
    ) -> None:
        self.desk = desk
        self.instance_id = instance_id
        self.protocols = protocols
        self.version = version
        self.protocol_type = protocol_type
        self.id = ""
        self.generation = -1
        self.waiting: Any = None

    def join(self, metadata: bytes = b"") -> JoinGroupResponse | None:
        """The answer if it is there at once, the id asked for first where that is demanded."""
        response = self._join(metadata)
        if isinstance(response, JoinGroupResponse) and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = response.member_id
            response = self._join(metadata)
        self.waiting = response
        return self.joined()

    def _join(self, metadata: bytes) -> Any:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS if self.version else -1,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols],
        )
        return self.desk.run(lambda machine, now: requests.join(machine, client(version=self.version), request, now))

    def joined(self) -> JoinGroupResponse | None:
        """The answer to the join, if it is there. An error is raised as KafkaError."""
        response = self._answer()
        if response is not None:
            assert isinstance(response, JoinGroupResponse)
            if response.error_code:
                raise KafkaError(ErrorCode(response.error_code))
            self.id, self.generation = response.member_id, response.generation_id
        return response

    def sync(self, assignment: dict[str, bytes] | None = None) -> SyncGroupResponse | None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in (assignment or {}).items()
            ],
        )
        self.waiting = self.desk.run(lambda machine, now: requests.sync(machine, request, now))
        return self.synced()

    def synced(self) -> SyncGroupResponse | None:
        """The answer to the sync, if it is there. KafkaError is raised."""
        response = self._answer()
        assert response is None or isinstance(response, SyncGroupResponse)
        return response

    def _answer(self) -> Any:
        waiting = self.waiting
        if isinstance(waiting, Pending):
            if isinstance(waiting.result, Exception):
                self.waiting = None
                raise waiting.result
            waiting = waiting.result
        if waiting is not None:
            self.waiting = None
        return waiting

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.id, group_instance_id=self.instance_id
        )
        response = self.desk.run(lambda machine, now: requests.heartbeat(machine, request, now))
        return ErrorCode(response.error_code)

    def leave(self) -> ErrorCode:
        request = LeaveGroupRequest(
            group_id=GROUP, members=[MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)]
        )
        response = self.desk.run(lambda machine, now: requests.leave(machine, client(version=5), request, now))
        return ErrorCode(response.members[0].error_code)


def refused(call: object, *arguments: object) -> ErrorCode:
    """The code with which the call fails."""
    with pytest.raises(KafkaError) as raised:
        call(*arguments)  # type: ignore[operator]
    return raised.value.code


def group_of(desk: Desk) -> ClassicGroup:
    group = desk.machine.groups.get(GROUP)
    assert isinstance(group, ClassicGroup)
    return group


def stable_group(desk: Desk, *members: Member) -> None:
    """All of them join and sync; the first leads and gives each its own id as assignment."""
    first, *others = members
    first.join()
    desk.settle()
    assert first.joined() is not None
    if others:
        for member in others:
            member.join()
        first.join()
        for member in others:
            assert member.joined() is not None
    for member in others:
        assert member.sync() is None
    assert first.sync({member.id: member.id.encode() for member in members}) is not None
    for member in others:
        response = member.synced()
        assert response is not None
        assert response.assignment == member.id.encode()
