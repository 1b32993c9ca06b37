"""A classic group and what can be asked of it. Everything that changes it with time is in the files beside this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.member import ClassicMember, SupportedProtocol
from kwire.coordinator.groups.offsets.expiration import OffsetExpiration
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Pending
from kwire.protocol.codec import MalformedError, UnsupportedVersionError
from kwire.protocol.consumer_protocol.serde import subscribed_topics
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kwire.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

CONSUMER = "consumer"
"""The protocol type of consumers. Connect's workers have another."""


class ClassicState(Enum):
    """By the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicGroup:
    """One group. Not on the timeline: what it loses in a crash, its members bring again."""

    kind = "classic"

    def __init__(self, group_id: str, wall_ms: int) -> None:
        """`wall_ms`: since when it is in its state, which is Empty."""
        self.id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_since_ms: int | None = wall_ms
        """Wall time; None where the record that it was loaded from did not say."""
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.leader: str | None = None
        """The member id of the leader."""
        self.members: dict[str, ClassicMember] = {}
        """By member id, in the order in which they came."""
        self._supporters: Counter[str] = Counter()
        """By protocol, how many of the members support it. Each join asks, and a group may have a thousand members."""
        self.awaiting_joins = 0
        """How many members' JoinGroup requests wait for the rebalance."""
        self.static_members: dict[str, str] = {}
        """Member ids by group.instance.id."""
        self.pending_members: set[str] = set()
        """Ids given to members that have not joined with them yet (KIP-394)."""
        self.pending_syncs: set[str] = set()
        """Members of this generation that have not asked for their assignment yet."""
        self.new_member_added = False
        """Whether somebody came during the delay of the first rebalance."""
        self.subscribed_topics: frozenset[str] | None = None
        """What the members of a group of consumers read; None where nobody can tell."""

    def __repr__(self) -> str:
        return f"<group {self.id!r} {self.state.value} generation={self.generation} members={len(self.members)}>"

    # What the offsets and the admin operations ask of any group

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def committed_state_name(self) -> str:
        return self.state.value  # which is in no record

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers, so that their subscriptions can be read."""
        return self.protocol_type == CONSUMER

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> None:
        if generation < 0 and self.state is ClassicState.EMPTY:
            return  # an admin client, or a consumer that takes no part in a group
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            self.check_generation(generation)
        elif not transactional and self.state is not ClassicState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        pass  # the classic protocol does not say who fetches

    def check_offset_delete(self) -> None:
        if self.state is not ClassicState.EMPTY and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.id} is not empty.")

    def check_delete(self) -> None:
        if self.state is not ClassicState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {self.id} is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def offset_expiration(self) -> OffsetExpiration | None:
        if not self.protocol_type:
            return OffsetExpiration(None)
        if self.state is ClassicState.EMPTY:
            return OffsetExpiration(self.state_since_ms)
        if self.state is ClassicState.STABLE and self.uses_consumer_protocol and self.subscribed_topics is not None:
            return OffsetExpiration(None)
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.id), None)]

    def loaded(self, machine: GroupMachine, now: Now) -> None:
        """The log has been replayed: sessions begin anew."""
        from kwire.coordinator.groups.classic.rebalancing import begin_sessions

        begin_sessions(machine, self, now)

    def unloaded(self) -> None:
        """Another broker coordinates the group from now on, or it is gone."""
        self.become(ClassicState.DEAD, 0)
        for member in self.members.values():
            self.answer_join_with(member, ErrorCode.NOT_COORDINATOR)
            self.answer_sync_with(member, ErrorCode.NOT_COORDINATOR)

    # Checks

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where another member has that instance id."""
        if instance_id is not None:
            present = self.static_members.get(instance_id)
            if present is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if present != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def has_room_for(self, member_id: str, max_size: int) -> bool:
        """Whether this member may join: who is in always may, others up to `group.max.size`."""
        if self.state is ClassicState.EMPTY:
            return True
        member = self.members.get(member_id)
        if self.state is ClassicState.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or self.awaiting_joins < max_size
        return member is not None or len(self.members) < max_size

    def supports(self, protocol_type: str, protocols: Iterable[SupportedProtocol]) -> bool:
        """Whether a member with these protocols can be in the group."""
        names = {protocol.name for protocol in protocols}
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and names)
        if not self.members:  # all have left while they were to join again
            return protocol_type == self.protocol_type and bool(names)
        return protocol_type == self.protocol_type and bool(names & self._supported_by_all())

    def _supported_by_all(self) -> set[str]:
        return {name for name, count in self._supporters.items() if count == len(self.members)}

    def selected_protocol(self) -> str:
        """The protocol most members like best among those that all support."""
        candidates = self._supported_by_all()
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # Members

    @property
    def all_joined(self) -> bool:
        return not self.pending_members and self.awaiting_joins == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        self._supporters += _named(member.protocols)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        self.pending_members.discard(member.id)

    def remove(self, member_id: str) -> None:
        """Takes a member out, and whoever of the others joined first is the leader if it was."""
        member = self.members.pop(member_id)
        self._supporters -= _named(member.protocols)
        if member.awaiting_join is not None:
            self.awaiting_joins -= 1
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def change(
        self,
        member: ClassicMember,
        protocols: tuple[SupportedProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """The member says this of itself from now on."""
        self._supporters -= _named(member.protocols)
        self._supporters += _named(protocols)
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """The same static member under a new id; whoever waits under the old one is fenced. In its place, and leads
        if it did. It is no new member any more: while it waits for the others its session does not run out."""
        member = self.members[old_id]
        self.answer_join_with(member, ErrorCode.FENCED_INSTANCE_ID)
        self.answer_sync_with(member, ErrorCode.FENCED_INSTANCE_ID)
        member.id, member.is_new = new_id, False
        self.members = {known.id: known for known in self.members.values()}
        if member.instance_id is not None:
            self.static_members[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)
        return member

    def elect_joined_leader(self) -> bool:
        """Sees to it that the leader is a member that has rejoined. False where none has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = next((member for member in self.members.values() if member.awaiting_join is not None), None)
        if joined is None:
            return False
        self.leader = joined.id
        return True

    # States

    def become(self, state: ClassicState, wall_ms: int) -> None:
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = wall_ms

    def begin_generation(self, wall_ms: int) -> None:
        """The rebalance has whom it will have: the next generation is theirs."""
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol_name = self.selected_protocol()
            self.become(ClassicState.COMPLETING_REBALANCE, wall_ms)
        else:
            self.protocol_name = None
            self.become(ClassicState.EMPTY, wall_ms)
        self.read_subscriptions()

    def read_subscriptions(self) -> None:
        """Finds out what the members read."""
        if not self.uses_consumer_protocol or (self.members and self.protocol_name is None):
            self.subscribed_topics = None
            return
        topics: set[str] = set()
        try:
            for member in self.members.values():
                topics.update(subscribed_topics(member.metadata(self.protocol_name or "")))
        except (MalformedError, UnsupportedVersionError):
            self.subscribed_topics = None
        else:
            self.subscribed_topics = frozenset(topics)

    # Answers to those who wait

    def joined(self, member: ClassicMember) -> JoinGroupResponse:
        """The current generation, for a member; the leader is told all members."""
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            member_id=member.id,
            members=self.current_members() if member.id == self.leader else [],
        )

    def current_members(self) -> list[JoinGroupResponseMember]:
        """All members with what they say for the selected protocol."""
        return [
            JoinGroupResponseMember(
                member_id=member.id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name or ""),
            )
            for member in self.members.values()
        ]

    def synced(self, member: ClassicMember) -> SyncGroupResponse:
        """The member's assignment."""
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    def answer_join(self, member: ClassicMember) -> None:
        self._end_join(member, self.joined(member))

    def answer_join_with(self, member: ClassicMember, code: ErrorCode, member_id: str | None = None) -> None:
        """`member_id`: "" where the client is to join without one."""
        told = member.id if member_id is None else member_id
        self._end_join(member, JoinGroupResponse(error_code=code, member_id=told, protocol_name=None))

    def _end_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        waiting, member.awaiting_join = member.awaiting_join, None
        if waiting is not None:
            self.awaiting_joins -= 1
            waiting.answer(response)

    def await_join(self, member: ClassicMember) -> Pending[JoinGroupResponse]:
        """The member's JoinGroup waits; one before it, whose client most likely has gone, waits no longer."""
        self.answer_join_with(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.awaiting_join = Pending()
        self.awaiting_joins += 1
        return member.awaiting_join

    def answer_sync(self, member: ClassicMember) -> bool:
        """Whether it waited."""
        waiting, member.awaiting_sync = member.awaiting_sync, None
        if waiting is not None:
            waiting.answer(self.synced(member))
        return waiting is not None

    def answer_sync_with(self, member: ClassicMember, code: ErrorCode) -> None:
        waiting, member.awaiting_sync = member.awaiting_sync, None
        if waiting is not None:
            waiting.answer(KafkaError(code))


def _named(protocols: Iterable[SupportedProtocol]) -> Counter[str]:
    """Each name once, though a client may say it twice."""
    return Counter({protocol.name for protocol in protocols})
