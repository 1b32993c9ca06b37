"""Word of the partitions that this broker begins and ceases to lead, for the coordinators that keep state in them.

A partition is led while this broker is its leader and its log can be used: leadership ends too with the partition's
deletion and with its log dir. The word comes at once, on the event loop, before anything else is done in the new role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kwire.cluster.leader_log import LeaderLog

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition


class LeadershipListener(Protocol):
    """Who is told; one a topic. Must not raise and must not wait."""

    def lead(self, index: int, log: LeaderLog) -> None:
        """This broker leads the partition in a leader epoch that is new; it may have led it in the one before."""

    def resign(self, index: int) -> None:
        """This broker does not lead the partition any more."""


class Leaderships:
    """Who listens, and what they were told."""

    def __init__(self) -> None:
        self._listeners: dict[str, LeadershipListener] = {}
        self._told: dict[Partition, int] = {}
        """The leader epochs of which a listener knows."""

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Whoever is listening to that topic is told from now on; `look` at what is led already."""
        self._listeners[topic] = listener

    def look(self, partition: Partition) -> None:
        """Tells the listener what is new of this partition, if anything is."""
        listener = self._listeners.get(partition.topic)
        if listener is None:
            return
        log = partition.log
        if log is None or not partition.is_leader:
            if self._told.pop(partition, None) is not None:
                listener.resign(partition.index)
        elif self._told.get(partition) != partition.leader_epoch:
            self._told[partition] = partition.leader_epoch
            listener.lead(partition.index, LeaderLog(partition, log))
