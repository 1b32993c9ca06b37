"""A consumer group: all that its records say, and what can be asked of it. Changed by replaying records only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from kwire.coordinator.groups.consumer.counts import Counts
from kwire.coordinator.groups.consumer.member import NO_PARTITIONS, ConsumerMember, MemberState, Partitions
from kwire.coordinator.groups.consumer.records import group_tombstones
from kwire.coordinator.groups.group import CommitCheck
from kwire.coordinator.groups.offsets.expiration import OffsetExpiration
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

PROTOCOL_TYPE = "consumer"

_COMMITS_WITH_EPOCH_FROM = 9
"""The first version of OffsetCommit that knows member epochs."""


class GroupEpochs(NamedTuple):
    """Where the group is."""

    group: int = 1
    """Grows whenever a new target assignment is needed."""
    metadata_hash: int = 0
    """Of the topics subscribed to, when the group epoch began."""
    assignment: int = 1
    """The group epoch that the target assignment was made for; -1 while it is being deleted."""
    assigned_ms: int = 0
    """Wall time at which it was made; 0 where nobody knows."""
    has_partition_metadata: bool = False
    """Whether there is a record of a broker before 4.1 to delete."""


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression, as of a version of the metadata and a wall time."""

    topics: frozenset[str]
    version: int
    wall_ms: int


class ConsumerGroup:
    """A group of the consumer protocol. Members of the classic protocol may be in it too, while it migrates."""

    kind = "consumer"
    protocol_type = PROTOCOL_TYPE

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        self.id = group_id
        self.members: TimelineDict[str, ConsumerMember] = TimelineDict(timeline)
        self.targets: TimelineDict[str, Partitions] = TimelineDict(timeline)
        """By member id, what it shall have."""
        self.static_members: TimelineDict[str, str] = TimelineDict(timeline)
        """Member ids by instance id."""
        self.owners: TimelineDict[tuple[bytes, int], str] = TimelineDict(timeline)
        """By partition, the member that reads it or has yet to let go of it."""
        self.regexes: TimelineDict[str, ResolvedRegex] = TimelineDict(timeline)
        self.names = Counts[str](timeline)
        """How many members subscribe to a topic by its name."""
        self.matches = Counts[str](timeline)
        """How many regular expressions match a topic."""
        self.regex_members = Counts[str](timeline)
        self.assignors = Counts[str](timeline)
        """How many members would like an assignor."""
        self.classic_protocols = Counts[str](timeline)
        """How many members of the classic protocol support an assignor of the clients."""
        self._classic = Counts[bool](timeline)
        self._epochs: TimelineDict[None, GroupEpochs] = TimelineDict(timeline)
        self._epochs[None] = GroupEpochs()
        self.checked: tuple[int, int] | None = None
        """The version of the metadata whose topics were hashed last, and the hash. Not in any record."""

    def __repr__(self) -> str:
        return f"<group {self.id!r} {self.state_name} epoch={self.epochs.group} members={len(self.members)}>"

    # Changes, by replay only

    def update(self, member: ConsumerMember) -> None:
        """Puts a member in the place of the one with its id, if there is one."""
        old = self.members.get(member.id)
        self.members[member.id] = member
        self._count(old, member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        if member is not None:
            self._count(member, None)
            if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
                self.static_members.pop(member.instance_id)

    def resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Takes the topics that match a regular expression; None: nobody subscribes to it any more."""
        old = self.regexes.get(regex)
        self.matches.move(() if old is None else old.topics, () if resolved is None else resolved.topics)
        if resolved is None:
            self.regexes.pop(regex)
        else:
            self.regexes[regex] = resolved

    @property
    def epochs(self) -> GroupEpochs:
        return self._epochs[None]

    @epochs.setter
    def epochs(self, epochs: GroupEpochs) -> None:
        self._epochs[None] = epochs

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        names = frozenset() if old is None else old.topic_names, frozenset() if new is None else new.topic_names
        if names[0] != names[1]:
            self.names.move(*names)
        self.regex_members.move(_present(old and old.topic_regex), _present(new and new.topic_regex))
        self.assignors.move(_present(old and old.assignor), _present(new and new.assignor))
        before, after = old and old.classic, new and new.classic
        if before != after:
            self._classic.move(() if before is None else (True,), () if after is None else (True,))
            self.classic_protocols.move(
                () if before is None else {protocol.name for protocol in before.protocols},
                () if after is None else {protocol.name for protocol in after.protocols},
            )
        owned, kept = _owned(old), _owned(new)
        for partition in owned - kept:
            if old is not None and self.owners.get(partition) == old.id:
                self.owners.pop(partition)
        if new is not None:
            for partition in kept:
                if self.owners.get(partition) != new.id:
                    self.owners[partition] = new.id

    # Members

    def member(self, member_id: str) -> ConsumerMember:
        """Raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member with this instance id, if there is one."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id) or NO_PARTITIONS

    @property
    def classic_members(self) -> int:
        """How many members speak the classic protocol."""
        return self._classic[True]

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member has yet to let go of a partition that this one shall have."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            index not in member.assigned.get(topic_id, {}) and (topic_id, index) in self.owners
            for topic_id, indexes in self.target_of(member.id).items()
            for index in indexes
        )

    # Subscriptions

    def subscribed_topics(self) -> set[str]:
        """The names of all topics that a member reads or would read if they existed."""
        return {*self.names.keys(), *self.matches.keys()}

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that a member reads. A regular expression not resolved yet matches none."""
        resolved = self.regexes.get(member.topic_regex) if member.topic_regex else None
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members would like."""
        return max(self.assignors.items(), key=lambda item: item[1], default=(default, 0))[0]

    # What the offsets and the admin operations ask of any group

    @property
    def state_name(self) -> str:
        return _state_name(self.epochs, self.members.values())

    @property
    def committed_state_name(self) -> str:
        members = [member for _, member in self.members.committed_items()]
        return _state_name(self._epochs.committed(None) or GroupEpochs(), members)

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> CommitCheck | None:
        if generation < 0 and self.is_empty:
            return None  # an admin client, or a consumer that takes no part in a group
        if transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and api_version < _COMMITS_WITH_EPOCH_FROM:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if generation == member.epoch:
            return None
        if generation > member.epoch:
            raise _stale(
                member, f"Received {_what(member)} {generation} is newer than current member epoch {member.epoch}."
            )
        return _check_partitions(member, generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.members.committed(member_id or "")
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        if member_epoch != member.epoch:
            raise _stale(
                member,
                f"The received {_what(member)} {member_epoch} does not match the expected member epoch {member.epoch}.",
            )

    def check_offset_delete(self) -> None:
        pass  # what members are subscribed to is refused topic by topic

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.names or topic in self.matches

    def offset_expiration(self) -> OffsetExpiration | None:
        return OffsetExpiration(None)

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.id, self.members, self.regexes)

    def loaded(self, machine: GroupMachine, now: Now) -> None:
        """The log has been replayed: sessions begin anew."""
        from kwire.coordinator.groups.consumer.sessions import begin_sessions

        begin_sessions(machine, self, now)

    def unloaded(self) -> None:
        """Nobody waits: every heartbeat is answered when it is written."""


def _state_name(epochs: GroupEpochs, members: Collection[ConsumerMember]) -> str:
    if not members:
        return "Empty"
    if epochs.group > epochs.assignment:
        return "Assigning"
    if all(member.is_reconciled_to(epochs.assignment) for member in members):
        return "Stable"
    return "Reconciling"


def _owned(member: ConsumerMember | None) -> set[tuple[bytes, int]]:
    if member is None:
        return set()
    return {
        (topic_id, partition)
        for owned in (member.assigned, member.pending_revocation)
        for topic_id, epochs in owned.items()
        for partition in epochs
    }


def _present(name: str | None) -> tuple[str, ...]:
    return (name,) if name else ()


def _what(member: ConsumerMember) -> str:
    return "member epoch" if member.classic is None else "generation id"


def _stale(member: ConsumerMember, message: str) -> KafkaError:
    code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    return KafkaError(code, message)


def _check_partitions(member: ConsumerMember, generation: int) -> Callable[[str, bytes, int], None]:
    """A member that has not heard of its newest epoch may still commit what it had before that (KIP-1251)."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        epoch = member.epoch_of(topic_id, partition)
        if epoch is None:
            raise _stale(member, f"Partition {topic}-{partition} is not assigned or pending revocation for member.")
        if generation < epoch:
            raise _stale(
                member,
                f"Received {_what(member)} {generation} is older than assignment epoch {epoch} "
                f"for partition {topic}-{partition}.",
            )

    return check
