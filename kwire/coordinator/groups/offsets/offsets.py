"""The offsets of all groups of a partition of __consumer_offsets."""

from __future__ import annotations

from typing import NamedTuple

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.protocol import uuids

TopicPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    """Where a group goes on reading a partition."""

    offset: int
    leader_epoch: int
    """Of the last record read; -1 where the client did not say."""
    metadata: str
    committed_ms: int
    """Wall time."""
    expires_ms: int | None = None
    """Wall time, where the commit came with a retention of its own."""
    topic_id: bytes = uuids.ZERO
    order: int = 0
    """Grows with the commits: of two, the one written later counts, though its transaction may end sooner."""

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it was committed for the topic of that id; true where one of the two is not known."""
        return uuids.ZERO in (self.topic_id, topic_id) or self.topic_id == topic_id


class Offsets:
    """What is committed, and what is pending in open transactions."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._order = 0
        self.by_group: TimelineDict[str, TimelineDict[TopicPartition, CommittedOffset]] = TimelineDict(timeline)
        self.pending: TimelineDict[int, TimelineDict[tuple[str, TopicPartition], CommittedOffset]] = TimelineDict(
            timeline
        )
        """By producer id, by group and partition."""
        self.open_transactions: TimelineDict[str, frozenset[int]] = TimelineDict(timeline)
        """By group, the producers with offsets for it in open transactions."""
        self._groups_of: TimelineDict[int, frozenset[str]] = TimelineDict(timeline)
        """The other way round."""

    # Changes, by replay only

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset, producer: Producer | None) -> None:
        """A commit, pending until its producer's transaction ends if it has one."""
        self._order += 1
        offset = offset._replace(order=self._order)
        if producer is None:
            self._put(group_id, partition, offset)
            return
        pending = self.pending.get(producer.id)
        if pending is None:
            pending = self.pending[producer.id] = TimelineDict(self._timeline)
        pending[group_id, partition] = offset
        self.open_transactions[group_id] = (self.open_transactions.get(group_id) or frozenset()) | {producer.id}
        self._groups_of[producer.id] = (self._groups_of.get(producer.id) or frozenset()) | {group_id}

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """A tombstone: what is committed is gone, and what is pending for it too."""
        committed = self.by_group.get(group_id)
        if committed is not None:
            committed.pop(partition)
            if not committed:
                self.by_group.pop(group_id)
        for producer_id in self.open_transactions.get(group_id) or ():
            self.pending[producer_id].pop((group_id, partition))

    def end_transaction(self, producer: Producer, *, commit: bool) -> None:
        """The producer's pending offsets count from now on, or are forgotten."""
        pending = self.pending.pop(producer.id)
        if pending is None:
            return
        for group_id in self._groups_of.pop(producer.id) or ():
            left = (self.open_transactions.get(group_id) or frozenset()) - {producer.id}
            if left:
                self.open_transactions[group_id] = left
            else:
                self.open_transactions.pop(group_id)
        if commit:
            for (group_id, partition), offset in pending.items():
                present = self.get(group_id, partition)
                if present is None or present.order < offset.order:
                    self._put(group_id, partition, offset)

    def _put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        committed = self.by_group.get(group_id)
        if committed is None:
            committed = self.by_group[group_id] = TimelineDict(self._timeline)
        committed[partition] = offset

    # Reading

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The newest, written though perhaps not committed to the log yet."""
        committed = self.by_group.get(group_id)
        return None if committed is None else committed.get(partition)

    def of_group(self, group_id: str) -> list[tuple[TopicPartition, CommittedOffset]]:
        """Likewise, all of a group."""
        committed = self.by_group.get(group_id)
        return [] if committed is None else committed.items()

    def safe(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The newest that no failure can take back."""
        committed = self.by_group.committed(group_id)
        return None if committed is None else committed.committed(partition)

    def safe_of_group(self, group_id: str) -> list[tuple[TopicPartition, CommittedOffset]]:
        """Likewise, all of a group."""
        committed = self.by_group.committed(group_id)
        return [] if committed is None else committed.committed_items()

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has an offset for the partition."""
        for producer_id in self.open_transactions.get(group_id) or ():
            if (group_id, partition) in self.pending[producer_id]:
                return True
        return False

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """The partitions for which open transactions have offsets."""
        found: set[TopicPartition] = set()
        for producer_id in self.open_transactions.get(group_id) or ():
            found.update(partition for group, partition in self.pending[producer_id] if group == group_id)
        return found
