"""What every kind of group can tell; the offsets and the admin operations ask no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kwire.coordinator.groups.offsets.expiration import OffsetExpiration
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

CommitCheck = Callable[[str, bytes, int], None]
"""Given the name and id of a topic and a partition, raises what a commit of that partition gets."""


class Group(Protocol):
    """A group, classic or consumer."""

    id: str

    @property
    def kind(self) -> str:
        """As ListGroups names it: "classic" or "consumer"."""

    @property
    def protocol_type(self) -> str:
        """ "consumer" for consumers, "" for a group that has no members and never had."""

    @property
    def state_name(self) -> str:
        """As ListGroups and the descriptions name it: "Empty", "Stable", …"""

    @property
    def committed_state_name(self) -> str:
        """The same, as far as no failure can take it back."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, api_version: int
    ) -> CommitCheck | None:
        """Raises what an OffsetCommit or TxnOffsetCommit of that member and generation or member epoch gets.

        UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS, …
        Returns what is to be asked for each partition besides, if anything; what that raises fails the whole request.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises what an OffsetFetch of that member gets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""

    def check_offset_delete(self) -> None:
        """Raises where offsets can't be deleted in the group's state: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

    def check_delete(self) -> None:
        """Raises where the group can't be deleted in its state: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic; True too where nobody can tell."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """When the group's offsets expire; None while they don't."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group, its offsets aside."""

    def loaded(self, machine: GroupMachine, now: Now) -> None:
        """The log has been replayed: deadlines begin."""

    def unloaded(self) -> None:
        """Another broker coordinates the group from now on: whoever waits is answered NOT_COORDINATOR."""
