"""One member of a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.coordinator.runtime.outcome import Pending

if TYPE_CHECKING:
    from kwire.protocol.messages.join_group import JoinGroupResponse
    from kwire.protocol.messages.sync_group import SyncGroupResponse


class SupportedProtocol(NamedTuple):
    """An assignor's name and what the member tells its leader for it (for consumers, a subscription)."""

    name: str
    metadata: bytes


class ClassicMember:
    """A member; times are ms. `is_new`: it has joined, but no rebalance has been completed with it."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[SupportedProtocol, ...],
        assignment: bytes = b"",
        *,
        is_new: bool = False,
    ) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        """In the order of the member's preference."""
        self.assignment = assignment
        self.is_new = is_new
        self.awaiting_join: Pending[JoinGroupResponse] | None = None
        self.awaiting_sync: Pending[SyncGroupResponse] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a JoinGroup or SyncGroup of it waits for its answer: a client that waits need not heartbeat."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str) -> bytes:
        """What it says for that protocol; empty where it does not support it."""
        return next((supported.metadata for supported in self.protocols if supported.name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The candidate it likes best. There must be one that it supports."""
        return next(supported.name for supported in self.protocols if supported.name in candidates)
