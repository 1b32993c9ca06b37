"""A Fetch request outside a session that is known from an earlier one: all but its partitions and offsets is the same.

It is answered when there is enough to send already, and all of it in memory; who has to wait does so in a session that
lasts as long (`kwire.broker.apis.fetch`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kwire.broker.dispatch import Parts
from kwire.broker.fetch_answers import FLEXIBLE_FROM, Answer
from kwire.broker.sendable import sendable_at_once
from kwire.cluster.replica import Bound, PartitionRead
from kwire.ports.files import Buffer, FileSlice
from kwire.protocol.messages.fetch import FetchRequest
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import Session
    from kwire.cluster.partition import Partition

BOUNDS = {0: Bound.HIGH_WATERMARK, 1: Bound.LAST_STABLE_OFFSET}
"""By isolation level."""
BY_TOPIC_ID = 13
_WITH_RACK = 11

_PARTITION = Struct(">iiqqi")
"""Index, leader epoch, fetch offset, log start offset (of a follower), the most bytes; before flexible versions."""
_FLEXIBLE_PARTITION = Struct(">iiqiqiB")
"""Likewise, with the last fetched epoch in the middle, and the number of tagged fields."""
_NOTHING_FORGOTTEN = b"\0\1"
"""Behind the tags of the topic, of which there are none."""
LONGEST_RACK = 100
"""Bytes of the name of the client's rack. Consumers that differ in it alone have one template."""
MOST_PARTITIONS = 126
"""Looked at in one go; who reads more of them gives way to others meanwhile. Their number takes one byte."""

Targets = list[tuple[int, "Partition", int, int, int]]
"""Of each partition: its index, the partition, the leader epoch that the client knows, fetch offset, most bytes."""


def _ends(behind: memoryview, version: int) -> bool:
    """Whether this is what stands behind the partitions: no topic that is forgotten, whatever rack, no tags."""
    size = len(behind)
    if version >= FLEXIBLE_FROM:
        return (
            4 <= size <= 4 + LONGEST_RACK
            and behind[:2] == _NOTHING_FORGOTTEN
            and behind[2] == size - 3
            and not behind[-1]
        )
    if version < _WITH_RACK:
        return behind == bytes(4)
    return 6 <= size <= 6 + LONGEST_RACK and behind[:4] == bytes(4) and int.from_bytes(behind[4:6], "big") == size - 6


def _sendable(read: PartitionRead) -> FileSlice | Buffer | None:
    """The records as they are sent; None where they would have to be waited for, or fail to be read."""
    part = read.slice
    if part is None:
        return b""
    assert isinstance(part, FileSlice)  # what is streamed is in remote storage, and not read at once
    try:
        return sendable_at_once(part, just_read=True)
    except OSError:
        return None


class FetchWithoutSession:
    """The template of such a request."""

    settles = True

    __slots__ = ("_answer", "_bound", "_flexible", "_max_bytes", "_min_bytes", "_size", "_topic", "_version")

    def __init__(self, request: FetchRequest, version: int, size: int) -> None:
        """`size`: of what stands before the number of partitions, in bytes."""
        (topic,) = request.topics
        self._topic = topic.topic_id if version >= BY_TOPIC_ID else topic.topic
        self._version = version
        self._flexible = version >= FLEXIBLE_FROM
        self._size = size
        self._bound = BOUNDS[request.isolation_level]
        self._min_bytes = max(request.min_bytes, 1)
        self._max_bytes = request.max_bytes
        self._answer = Answer(self._topic, version, self._bound)

    def answer(self, broker: Broker, session: Session, frame: memoryview, correlation_id: int) -> Parts | None:
        topic = self._topic
        name = topic if isinstance(topic, str) else broker.store.image.topic_names.get(topic)
        if name is None:
            return None
        targets = self._targets(broker, name, frame)
        if targets is None or not session.allows(Operation.READ, ResourceType.TOPIC, name):
            return None
        bound, room, found = self._bound, min(self._max_bytes, broker.config["fetch.max.bytes"]), 0
        told: list[tuple[int, PartitionRead, FileSlice | Buffer]] = []
        for index, partition, leader_epoch, offset, max_bytes in targets:
            read = partition.fetch_at_once(offset, min(max_bytes, room), bound, leader_epoch, min_one=not found)
            if read is None:
                return None
            records = _sendable(read)
            if records is None:
                return None
            size = len(records)
            found += size
            room = max(room - size, 0)
            told.append((index, read, records))
        return self._answer.parts(correlation_id, told) if found >= self._min_bytes else None

    def _targets(self, broker: Broker, name: str, frame: memoryview) -> Targets | None:
        """What is asked for; None where it is understood otherwise, or where there is nothing to send yet."""
        at, known, committed = self._size, broker.replicas.partitions, self._bound == Bound.LAST_STABLE_OFFSET
        if self._flexible:
            number, at, each = frame[at] - 1, at + 1, _FLEXIBLE_PARTITION
        else:
            number, at, each = int.from_bytes(frame[at : at + 4], "big"), at + 4, _PARTITION
        if not 0 < number <= MOST_PARTITIONS:
            return None
        end = at + number * each.size
        if not _ends(frame[end:], self._version):
            return None
        targets: Targets = []
        empty = True
        for asked in each.iter_unpack(frame[at:end]):
            if self._flexible:
                index, leader_epoch, offset, last_fetched_epoch, _, max_bytes, tags = asked
                if last_fetched_epoch >= 0 or tags:
                    return None
            else:
                index, leader_epoch, offset, _, max_bytes = asked
            partition = known.get((name, index))
            log = None if partition is None else partition.log
            if partition is None or log is None or max_bytes < 0:
                return None
            if self._topic is not name and partition.topic_id != self._topic:
                return None
            if offset < (log.last_stable_offset if committed else log.high_watermark):
                empty = False
            targets.append((index, partition, leader_epoch, offset, max_bytes))
        if empty or (number > 1 and len({target[0] for target in targets}) < number):
            return None
        return targets
