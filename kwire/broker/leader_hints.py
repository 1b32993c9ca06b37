"""Who leads now: told with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH, which spares a question (KIP-951)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.session import Session

_HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class LeaderHints:
    """Collects, over one response, the leaders told and their addresses on the caller's listener."""

    __slots__ = ("_broker", "_nodes", "_session", "_wanted")

    def __init__(self, broker: Broker, session: Session, *, wanted: bool) -> None:
        """`wanted`: whether the version of the response can carry them."""
        self._wanted = wanted
        self._broker = broker
        self._session = session
        self._nodes: dict[int, tuple[int, str, int, str | None]] | None = None

    def after(self, error: KafkaError, topic: str, index: int) -> tuple[int, int] | None:
        """(leader id, leader epoch) to tell with this error, or None where there is nothing to tell."""
        if not self._wanted or error.code not in _HINTED:
            return None
        image = self._broker.store.image
        partition = image.partition(topic, index)
        if partition is None:
            return None
        leader = image.brokers.get(partition.leader)
        endpoint = leader.endpoint(self._session.listener) if leader is not None else None
        if leader is not None and endpoint is not None:
            if self._nodes is None:
                self._nodes = {}
            self._nodes[leader.id] = (leader.id, endpoint.host, endpoint.port, leader.rack)
        return partition.leader, partition.leader_epoch

    @property
    def endpoints(self) -> list[tuple[int, str, int, str | None]]:
        """(node id, host, port, rack) of each leader told."""
        return [] if self._nodes is None else list(self._nodes.values())
