"""A segment that was copied to remote storage, and the states that it goes through (KIP-405).

    COPY_SEGMENT_STARTED ---> COPY_SEGMENT_FINISHED ---> DELETE_SEGMENT_STARTED ---> DELETE_SEGMENT_FINISHED
             \\_________________________________________________/        (forgotten)

A copy that did not finish goes straight to its deletion. A copy is told of before its first byte goes up, and a
deletion before its first byte goes, so that a crash leaves nothing that nobody knows of.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kwire.protocol import uuids
from kwire.storage import layout


class SegmentState(IntEnum):
    """RemoteLogSegmentState."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


_NEXT = {
    SegmentState.COPY_SEGMENT_STARTED: (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED),
    SegmentState.COPY_SEGMENT_FINISHED: (SegmentState.DELETE_SEGMENT_STARTED,),
    SegmentState.DELETE_SEGMENT_STARTED: (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED),
    SegmentState.DELETE_SEGMENT_FINISHED: (),
}

OBJECTS = (
    layout.OFFSET_INDEX,
    layout.TIME_INDEX,
    layout.TRANSACTION_INDEX,
    layout.SNAPSHOT,
    layout.LEADER_EPOCHS,
    layout.LOG,
)
"""The objects of a segment: the files of the segment, the producers and the leader epochs at its end. A segment without
aborted transactions has no `.txnindex`."""

_TOPIC_CHARACTERS = 150
"""Of a topic's name in the names of its objects; it is there for people, the topic's id tells topics apart."""


@dataclass(frozen=True, slots=True)
class TopicIdPartition:
    """A partition, by the id of its topic: a topic of the same name that comes later is another one."""

    topic: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{uuids.to_text(self.topic_id)}:{self.topic}-{self.partition}"

    @property
    def prefix(self) -> str:
        """What the keys of all objects of the partition begin with."""
        return f"{self.topic[:_TOPIC_CHARACTERS]}-{uuids.to_text(self.topic_id)}/{self.partition}/"


@dataclass(frozen=True, slots=True)
class RemoteSegment:
    """One copy of one segment, as `__remote_log_metadata` tells of it. Offsets are inclusive, times ms."""

    id: bytes
    start_offset: int
    end_offset: int
    max_timestamp: int
    size: int
    """Bytes of the .log."""
    epochs: tuple[tuple[int, int], ...]
    """(leader epoch, its first offset in this segment), ascending."""
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    broker_id: int = -1
    event_ms: int = 0
    has_transactions: bool = False
    """Whether there is a .txnindex."""

    def can_become(self, state: SegmentState) -> bool:
        """Whether that state may come after this one."""
        return state in _NEXT[self.state]

    def key(self, of: TopicIdPartition, which: str) -> str:
        """The key of one of the segment's objects: its last part is the name that the file has in a log dir.

        So that Kafka's tools read what was copied out of the store.
        """
        name = which
        if which != layout.LEADER_EPOCHS:
            # A snapshot bears the offset that it is of.
            name = layout.segment_name(self.end_offset + 1 if which == layout.SNAPSHOT else self.start_offset, which)
        return f"{of.prefix}{self.start_offset:020d}-{uuids.to_text(self.id)}/{name}"

    def keys(self, of: TopicIdPartition) -> list[str]:
        """The keys of all objects that the segment may have."""
        return [self.key(of, which) for which in OBJECTS]
