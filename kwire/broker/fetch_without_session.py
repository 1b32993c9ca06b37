"""A Fetch request outside a session that is known from an earlier one: all but its partitions and offsets is the same.

It is answered when there is enough to send already, and all of it in memory; who has to wait does so in a session that
lasts as long (`kwire.broker.apis.fetch`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kwire.broker.dispatch import Parts
from kwire.broker.fetch_answers import FLEXIBLE_FROM, Answer, count
from kwire.broker.sendable import sendable_at_once
from kwire.cluster.replica import Bound, PartitionRead
from kwire.ports.files import Buffer, FileSlice
from kwire.protocol.codec.runtime import varint
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
_NO_TAGS = b"\0"

Targets = list[tuple[int, "Partition", int, int, int]]
"""Of each partition: its index, the partition, the leader epoch that the client knows, fetch offset, most bytes."""


def size_from_partitions_on(request: FetchRequest, version: int) -> int:
    """How many bytes are the number of the one topic's partitions, these, and what stands behind them."""
    partitions = len(request.topics[0].partitions)
    each = _FLEXIBLE_PARTITION if version >= FLEXIBLE_FROM else _PARTITION
    return len(count(partitions, version)) + partitions * each.size + len(_behind(request, version))


def _behind(request: FetchRequest, version: int) -> bytes:
    """What stands behind the partitions: no forgotten topic, the rack, no tags."""
    rack = request.rack_id.encode()
    if version >= FLEXIBLE_FROM:
        return _NO_TAGS + count(0, version) + varint(len(rack) + 1) + rack + _NO_TAGS
    return count(0, version) + (len(rack).to_bytes(2, "big") + rack if version >= _WITH_RACK else b"")


class FetchWithoutSession:
    """The template of such a request."""

    __slots__ = ("_answer", "_behind", "_bound", "_flexible", "_max_bytes", "_min_bytes", "_size", "_topic")

    def __init__(self, request: FetchRequest, version: int, size: int) -> None:
        """`size`: of what stands before the number of partitions, in bytes."""
        (topic,) = request.topics
        self._topic = topic.topic_id if version >= BY_TOPIC_ID else topic.topic
        self._flexible = version >= FLEXIBLE_FROM
        self._size = size
        self._behind = _behind(request, version)
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
            if read is None or read.aborted:
                return None
            records = b"" if read.slice is None else sendable_at_once(read.slice)
            if records is None:
                return None
            size = len(records)
            found += size
            room = max(room - size, 0)
            told.append((index, read, records))
        return self._answer.parts(correlation_id, told) if found >= self._min_bytes else None

    def _targets(self, broker: Broker, name: str, frame: memoryview) -> Targets | None:
        """What is asked for; None where it is understood otherwise, or where there is nothing to send yet."""
        at, behind, known = self._size, self._behind, broker.replicas.partitions
        end = len(frame) - len(behind)
        if self._flexible:
            number, at, each = frame[at] - 1, at + 1, _FLEXIBLE_PARTITION
        else:
            number, at, each = int.from_bytes(frame[at : at + 4], "big"), at + 4, _PARTITION
        if number <= 0 or end - at != number * each.size or frame[end:] != behind:
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
            if partition is None or partition.log is None or max_bytes < 0:
                return None
            if self._topic is not name and partition.topic_id != self._topic:
                return None
            if offset < partition.log.high_watermark:
                empty = False
            targets.append((index, partition, leader_epoch, offset, max_bytes))
        if empty or (number > 1 and len({target[0] for target in targets}) < number):
            return None
        return targets
