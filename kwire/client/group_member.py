"""Being one of a group's consumers: joining, heartbeating, committing, leaving (the classic protocol).

    member = GroupMember(Groups(client), "my-group", ["topic"])
    nursery.start_soon(member.heartbeat)
    while True:
        if member.stale:
            partitions = await member.join()
        …

Every member that joins makes all others join again, each with what it has then (the eager protocol). The leader, one
of them, hands out partitions by ranges, as the assignor of that name of other clients does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from kwire.client.errors import ClientError, ConnectionLost
from kwire.client.group_offsets import commit_offsets
from kwire.client.metadata import check
from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment
from kwire.protocol.consumer_protocol.assignment import TopicPartition as AssignedTopic
from kwire.protocol.consumer_protocol.serde import decode, subscribed_topics
from kwire.protocol.consumer_protocol.subscription import ConsumerProtocolSubscription
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kwire.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kwire.protocol.version_prefixed import encode_version_prefixed

if TYPE_CHECKING:
    from kwire.client.connection import Connection
    from kwire.client.groups import Groups
    from kwire.protocol.types import TopicPartition

RANGE = "range"
PROTOCOL_TYPE = "consumer"
SESSION_TIMEOUT = 45.0
"""Seconds of silence after which the coordinator counts a member as gone."""

REBALANCE_TIMEOUT = 60.0
"""Seconds that members have to join again."""

JOINING_TIMEOUT = 310.0
"""Seconds within which a coordinator has all members again: Java's have 300 of them by default."""

LONG_WAIT = 10.0
"""Seconds after which it was the others that were waited for."""

HEARTBEAT_INTERVAL = 3.0

METADATA_MAX_AGE = 300.0
"""Seconds after which the leader looks again how many partitions there are."""

_NO_GENERATION = -1
_OLDEST_VERSION = 0
"""Of subscriptions and assignments: it says all there is to say here, and every client can read it."""

_FIRST_VERSION_WITH_MEMBERS_TO_LEAVE = 3
_JOIN_AGAIN = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}
_FORGOTTEN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}


class GroupMember:
    """One member. `join`, `commit` and `leave` are for one task, `heartbeat` for another, as long as it is a member.

    Each raises KafkaError where the coordinator refuses for good, else ClientError.
    """

    def __init__(self, groups: Groups, group: str, topics: Sequence[str]) -> None:
        self._groups = groups
        self._group = group
        self._topics = list(topics)
        self._id = ""
        self._generation = _NO_GENERATION
        self._stale = trio.Event()
        self._stale.set()
        self._handed_out: Collection[str] = ()
        """The topics of the group, where this member is the leader."""
        self._counts: Mapping[str, int] = {}
        """How many partitions they had then; those that did not exist are left out."""
        self._counted = 0.0
        """When that was."""

    @property
    def stale(self) -> bool:
        """Whether it has to join (again) before it reads on: its partitions may be another's."""
        return self._stale.is_set()

    async def until_stale(self) -> None:
        await self._stale.wait()

    async def join(self) -> list[TopicPartition]:
        """Joins, waits for the others, and returns what partitions it has now."""
        while True:
            self._generation = _NO_GENERATION
            try:
                joined = await self._groups.at_coordinator(self._group, self._join)
                assigned = await self._sync(joined)
            except KafkaError as error:
                if error.code in _FORGOTTEN:
                    self._id = ""
                elif error.code not in _JOIN_AGAIN and error.code is not ErrorCode.MEMBER_ID_REQUIRED:
                    raise
                continue
            self._generation = joined.generation_id
            self._stale = trio.Event()
            return assigned

    async def heartbeat(self) -> None:
        """Says that it is alive, until cancelled; it is `stale` where it must join again."""
        while True:
            await trio.sleep(HEARTBEAT_INTERVAL)
            generation = self._generation
            if generation == _NO_GENERATION or self.stale:
                continue
            try:
                await self._groups.at_coordinator(self._group, self._beat)
                changed = await self._is_to_hand_out_anew()
            except KafkaError as error:
                if generation == self._generation:
                    self._take(error)
            else:
                if changed and generation == self._generation:
                    self._stale.set()

    async def _is_to_hand_out_anew(self) -> bool:
        """Whether the topics that this member handed out have other partitions by now."""
        now = trio.current_time()
        if not self._handed_out or now - self._counted < METADATA_MAX_AGE:
            return False
        self._counted = now
        with trio.move_on_after(HEARTBEAT_INTERVAL):  # no heartbeat is to wait for longer
            with suppress(KafkaError, ClientError):
                counts = await self._groups.partition_counts(self._handed_out)
                # One that is not there may be just being made again, or not be known to that broker yet.
                return counts != self._counts and counts.keys() >= self._counts.keys()
        return False

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits the offsets to read next. Where it is no member of this generation any more it is `stale`, and
        another reads again what was not committed."""
        try:
            await commit_offsets(self._groups, self._group, offsets, generation=self._generation, member_id=self._id)
        except KafkaError as error:
            self._take(error)

    async def leave(self) -> None:
        """Leaves at once; its partitions go to the others."""

        async def ask(connection: Connection, coordinator: int) -> None:
            if connection.version(LeaveGroupRequest) >= _FIRST_VERSION_WITH_MEMBERS_TO_LEAVE:
                identity = MemberIdentity(member_id=self._id)
                response = await connection.call(LeaveGroupRequest(group_id=self._group, members=[identity]))
            else:
                response = await connection.call(LeaveGroupRequest(group_id=self._group, member_id=self._id))
            check(response.error_code, f"group {self._group!r}")

        if self._id:
            await self._groups.at_coordinator(self._group, ask)
        self._id, self._generation = "", _NO_GENERATION
        self._stale.set()

    def _take(self, error: KafkaError) -> None:
        if error.code in _FORGOTTEN:
            self._id = ""
        elif error.code not in _JOIN_AGAIN:
            raise error
        self._stale.set()

    async def _join(self, connection: Connection, coordinator: int) -> JoinGroupResponse:
        subscription = encode_version_prefixed(ConsumerProtocolSubscription(topics=self._topics), _OLDEST_VERSION)
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=int(SESSION_TIMEOUT * 1000),
            rebalance_timeout_ms=int(REBALANCE_TIMEOUT * 1000),
            member_id=self._id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=subscription)],
        )
        response: JoinGroupResponse = await _answered_with_others(connection, request)
        if response.member_id:
            self._id = response.member_id
        check(response.error_code, f"group {self._group!r}")
        return response

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        self._handed_out = ()
        assignments = await self._assign(joined) if joined.leader == joined.member_id else []
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self._id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=RANGE,
            assignments=assignments,
        )

        async def ask(connection: Connection, coordinator: int) -> list[TopicPartition]:
            response = await _answered_with_others(connection, request)
            check(response.error_code, f"group {self._group!r}")
            if not response.assignment:
                return []
            topics = decode(ConsumerProtocolAssignment, response.assignment).assigned_partitions
            return [(topic.topic, number) for topic in topics for number in topic.partitions]

        return await self._groups.at_coordinator(self._group, ask)

    async def _beat(self, connection: Connection, coordinator: int) -> None:
        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._id)
        check((await connection.call(request)).error_code, f"group {self._group!r}")

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        subscriptions = {member.member_id: subscribed_topics(member.metadata) for member in joined.members}
        topics = {topic for topics in subscriptions.values() for topic in topics}
        counts = await self._groups.partition_counts(topics)
        assigned = assign_ranges(subscriptions, counts)
        self._handed_out, self._counts, self._counted = topics, counts, trio.current_time()
        return [
            SyncGroupRequestAssignment(
                member_id=member,
                assignment=encode_version_prefixed(
                    ConsumerProtocolAssignment(
                        assigned_partitions=[
                            AssignedTopic(topic=topic, partitions=list(numbers)) for topic, numbers in topics.items()
                        ]
                    ),
                    _OLDEST_VERSION,
                ),
            )
            for member, topics in assigned.items()
        ]


async def _answered_with_others(connection: Connection, request: JoinGroupRequest | SyncGroupRequest) -> Any:
    """The response, for which the coordinator may wait for other members.

    Where a connection is lost that has waited for long, REBALANCE_IN_PROGRESS, so that it is joined again: the time
    that others took is none in which nothing went well. Who does not want to wait any longer can leave, which is not to
    wait behind this request.
    """
    asked = trio.current_time()
    try:
        return await connection.call(request, timeout=JOINING_TIMEOUT)
    except ConnectionLost as error:
        if trio.current_time() - asked < LONG_WAIT:
            raise
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, str(error)) from error
    except trio.Cancelled:
        connection.close()
        raise


def assign_ranges(
    subscriptions: Mapping[str, Collection[str]], partitions: Mapping[str, int]
) -> dict[str, dict[str, range]]:
    """For each member: by topic its partitions, in a row; the first members, by id, have one more where it has to be.

    `partitions` has how many partitions each topic has; those it does not name are nobody's.
    """
    assigned: dict[str, dict[str, range]] = {member: {} for member in subscriptions}
    for topic, count in sorted(partitions.items()):
        members = sorted(member for member, topics in subscriptions.items() if topic in topics)
        if not members:
            continue
        each, more = divmod(count, len(members))
        start = 0
        for position, member in enumerate(members):
            end = start + each + (position < more)
            if end > start:
                assigned[member][topic] = range(start, end)
            start = end
    return assigned
