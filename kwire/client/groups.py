"""Consumer groups from outside: what there is, who is in them, how far they have come, and changing that.

Groups of the classic protocol and of the consumer protocol (KIP-848) alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import trio

from kwire.client.errors import ClientError, UnsupportedApi, is_passing
from kwire.client.metadata import check
from kwire.protocol.codec.errors import MalformedError, UnsupportedVersionError
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kwire.protocol.messages.delete_groups import DeleteGroupsRequest
from kwire.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.connection import Connection
    from kwire.protocol.types import Buffer, TopicPartition

GROUP = 0
"""FindCoordinator's key type."""

CLASSIC, CONSUMER = "classic", "consumer"
"""Types of groups."""

_FIRST_VERSION_WITH_SEVERAL_KEYS = 4
_NOT_OF_THE_CONSUMER_PROTOCOL = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
_DEAD = "Dead"

T = TypeVar("T")


class GroupListing(NamedTuple):
    """A group. `type` and `state` are as the broker calls them; empty where it is too old to say."""

    id: str
    type: str
    protocol_type: str
    state: str


class GroupMember(NamedTuple):
    """A member and what it is assigned; `instance_id` is that of a static member. `host` begins with `/`."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group with its members. `protocol` is what its members chose, or the server's assignor."""

    id: str
    type: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: int
    members: tuple[GroupMember, ...]

    @property
    def active(self) -> bool:
        """Whether it has members."""
        return bool(self.members)


class Groups:
    """Each method raises KafkaError where the cluster refuses, else ClientError."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._coordinators: dict[str, int] = {}
        """Those that were found and have not failed since."""

    async def list_all(self) -> list[GroupListing]:
        """All groups that all brokers coordinate, by id."""

        async def ask_all() -> list[GroupListing]:
            client = self._client
            await client.refresh()
            found: dict[str, GroupListing] = {}

            async def ask(broker: int) -> None:
                response = await client.call(ListGroupsRequest(), broker=broker)
                check(response.error_code, f"broker {broker}")
                for group in response.groups:
                    found[group.group_id] = GroupListing(
                        group.group_id, group.group_type, group.protocol_type, group.group_state
                    )

            await _each(client.metadata.brokers, ask)
            return [found[group] for group in sorted(found)]

        return await self._client.retrying(ask_all)

    async def describe(self, group: str) -> GroupDescription:
        """Raises GROUP_ID_NOT_FOUND."""

        async def ask(connection: Connection, coordinator: int) -> GroupDescription:
            try:
                request = ConsumerGroupDescribeRequest(group_ids=[group])
                return _of_consumer_protocol(await connection.call(request), coordinator)
            except UnsupportedApi:  # the broker is older
                pass
            except KafkaError as error:
                if error.code not in _NOT_OF_THE_CONSUMER_PROTOCOL:
                    raise
            return _of_classic_protocol(await connection.call(DescribeGroupsRequest(groups=[group])), coordinator)

        return await self.at_coordinator(group, ask)

    async def delete(self, group: str) -> None:
        """Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

        async def ask(connection: Connection, coordinator: int) -> None:
            response = await connection.call(DeleteGroupsRequest(groups_names=[group]))
            for result in response.results:
                check(result.error_code, f"group {group!r}")

        await self.at_coordinator(group, ask)

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each of these topics has; those that do not exist are left out."""
        client = self._client

        async def ask() -> dict[str, int]:
            await client.refresh(topics)
            known = client.metadata.topics
            return {topic: len(known[topic].partitions) for topic in topics if topic in known}

        return await client.retrying(ask)

    async def at_coordinator(self, group: str, ask: Callable[[Connection, int], Awaitable[T]]) -> T:
        """What `ask` makes of a connection to the group's coordinator and of its id; again where it has moved."""

        async def attempt() -> T:
            coordinator = self._coordinators.get(group)
            if coordinator is None:
                coordinator = await self._find(group)
            self._coordinators[group] = coordinator
            try:
                return await ask(await self._client.connection(coordinator), coordinator)
            except (KafkaError, ClientError) as error:
                if is_passing(error):
                    self._coordinators.pop(group, None)
                raise

        return await self._client.retrying(attempt)

    async def _find(self, group: str) -> int:
        connection = await self._client.any_connection()
        if connection.version(FindCoordinatorRequest) >= _FIRST_VERSION_WITH_SEVERAL_KEYS:
            several = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
            found = (await connection.call(several)).coordinators[0]
        else:
            found = await connection.call(FindCoordinatorRequest(key=group))
        check(found.error_code, found.error_message or f"group {group!r}")
        if found.node_id not in self._client.metadata.brokers:
            await self._client.refresh()
        return found.node_id


def _of_consumer_protocol(response: ConsumerGroupDescribeResponse, coordinator: int) -> GroupDescription:
    (group,) = response.groups
    check(group.error_code, group.error_message or f"group {group.group_id!r}")
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                (topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ),
        )
        for member in group.members
    )
    return GroupDescription(
        group.group_id, CONSUMER, group.group_state, "consumer", group.assignor_name, coordinator, members
    )


def _of_classic_protocol(response: DescribeGroupsResponse, coordinator: int) -> GroupDescription:
    (group,) = response.groups
    check(group.error_code, group.error_message or f"group {group.group_id!r}")
    if group.group_state == _DEAD:  # what brokers before Kafka 4.0 say of a group that does not exist
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group.group_id!r}")
    members = tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _assigned(member.member_assignment) if group.protocol_type == "consumer" else (),
        )
        for member in group.members
    )
    return GroupDescription(
        group.group_id, CLASSIC, group.group_state, group.protocol_type, group.protocol_data, coordinator, members
    )


def _assigned(assignment: Buffer) -> tuple[TopicPartition, ...]:
    """The partitions of a consumer's assignment; none where it has none yet, or one that nobody can read."""
    from kwire.protocol.consumer_protocol.assignment import ConsumerProtocolAssignment
    from kwire.protocol.consumer_protocol.serde import decode

    if not assignment:
        return ()
    try:
        topics = decode(ConsumerProtocolAssignment, assignment).assigned_partitions
    except (MalformedError, UnsupportedVersionError):
        return ()
    return tuple((topic.topic, partition) for topic in topics for partition in topic.partitions)


async def _each(brokers: Iterable[int], ask: Callable[[int], Awaitable[None]]) -> None:
    """Asks all at once; raises the first that failed."""
    failures: list[Exception] = []

    async def one(broker: int) -> None:
        try:
            await ask(broker)
        except Exception as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for broker in brokers:
            nursery.start_soon(one, broker)
    if failures:
        raise failures[0]
