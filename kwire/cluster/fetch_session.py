"""The follower's side of a fetch session (KIP-227): after the first request only what changed is sent. No I/O.

    session 0, epoch 0      the first request names every partition and asks for a session
    session n, epoch 1…     later ones name those whose position changed, and those no longer wanted

Where the leader grants no session (id 0 in its answer), every request is like the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

_LAST_EPOCH = 0x7FFFFFFF

PartitionKey = tuple[bytes, int]
"""Topic id, partition number."""


class Position(NamedTuple):
    """Where a follower is in one partition."""

    fetch_offset: int
    last_fetched_epoch: int
    current_leader_epoch: int
    log_start_offset: int


class FetchSession:
    """What the leader has been told of this follower's partitions."""

    def __init__(self, max_partition_bytes: int) -> None:
        self._max_partition_bytes = max_partition_bytes
        self._id = 0
        self._epoch = 0
        self.asked: dict[PartitionKey, Position] = {}
        """The partitions that the leader serves now, and from where."""

    @property
    def begins(self) -> bool:
        """Whether the next request is a first one, which must name every partition."""
        return self._epoch == 0

    def reset(self) -> None:
        """Begins anew: the connection was lost, or the leader does not know the session (any more)."""
        self._id = self._epoch = 0
        self.asked.clear()

    def fill(
        self, request: FetchRequest, positions: Mapping[PartitionKey, Position], gone: Iterable[PartitionKey] = ()
    ) -> None:
        """Makes `request` ask for these partitions besides those asked for before, less the ones that are `gone`.

        It is taken for granted that the leader gets the request: after a failure, `reset`.
        """
        if self._epoch == 0:
            self.asked.clear()
        request.session_id = self._id
        request.session_epoch = self._epoch
        topics: dict[bytes, FetchTopic] = {}
        for key, position in positions.items():
            if self.asked.get(key) == position:
                continue
            self.asked[key] = position
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchTopic(topic_id=key[0])
            topic.partitions.append(
                FetchPartition(
                    partition=key[1],
                    current_leader_epoch=position.current_leader_epoch,
                    fetch_offset=position.fetch_offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=self._max_partition_bytes,
                )
            )
        forgotten: dict[bytes, ForgottenTopic] = {}
        for key in gone:
            if self.asked.pop(key, None) is not None:
                forgotten.setdefault(key[0], ForgottenTopic(topic_id=key[0])).partitions.append(key[1])
        request.topics = list(topics.values())
        request.forgotten_topics_data = list(forgotten.values())

    def answered(self, session_id: int) -> None:
        """Takes over the id of an answer without error; what was asked stays until the next `fill`."""
        if session_id == 0:
            self._id = self._epoch = 0
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
