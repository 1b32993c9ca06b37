"""A Fetch request outside a session that is known from an earlier one: all but its partitions and offsets is the same.

It is answered when there is enough to send, and all of it in memory. Who has read all there is waits for more here
(`waiting_fetch`); who finds less than he wants does so in a session that lasts as long (`kwire.broker.apis.fetch`).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from kwire.broker.dispatch import Call, Parts
from kwire.broker.fetch_answers import FLEXIBLE_FROM, Answer
from kwire.broker.sendable import sendable_at_once
from kwire.broker.waiting_fetch import WaitingFetch, Wanted
from kwire.cluster.replica import Bound, PartitionRead
from kwire.ports.files import Buffer, FileSlice
from kwire.protocol.messages.fetch import FetchRequest
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.session import Session

BOUNDS: Final = {0: Bound.HIGH_WATERMARK, 1: Bound.LAST_STABLE_OFFSET}
"""By isolation level."""
BY_TOPIC_ID: Final = 13
_WITH_RACK: Final = 11

_PARTITION: Final = Struct(">iiqqi")
"""Index, leader epoch, fetch offset, log start offset (of a follower), the most bytes; before flexible versions."""
_FLEXIBLE_PARTITION: Final = Struct(">iiqiqiB")
"""Likewise, with the last fetched epoch in the middle, and the number of tagged fields."""
_NOTHING_FORGOTTEN: Final = b"\0\1"
"""Behind the tags of the topic, of which there are none."""
LONGEST_RACK: Final = 100
"""Bytes of the name of the client's rack. Consumers that differ in it alone have one template."""
MOST_PARTITIONS: Final = 126
"""Looked at in one go; who reads more of them gives way to others meanwhile. Their number takes one byte."""

_NOTHING: Final[tuple[list[Wanted], bool]] = ([], False)
"""Never changed."""


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


def _sendable(part: FileSlice | None) -> FileSlice | Buffer | None:
    """The records as they are sent; None where they would have to be waited for, or fail to be read."""
    if part is None:
        return b""
    try:
        return sendable_at_once(part, just_read=True)
    except OSError:
        return None


class FetchWithoutSession:
    """The template of such a request."""

    settles = True

    __slots__ = (
        "_answer",
        "_api",
        "_bound",
        "_client_id",
        "_flexible",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_size",
        "_topic",
        "_version",
    )

    def __init__(self, call: Call, size: int) -> None:
        """`size`: of what stands before the number of partitions, in bytes."""
        request: FetchRequest = call.request
        version = call.api_version
        self._api, self._client_id = call.api, call.client_id
        (topic,) = request.topics
        self._topic = topic.topic_id if version >= BY_TOPIC_ID else topic.topic
        self._version = version
        self._flexible = version >= FLEXIBLE_FROM
        self._size = size
        self._bound = BOUNDS[request.isolation_level]
        self._min_bytes = max(request.min_bytes, 1)
        self._max_wait_ms = request.max_wait_ms if request.min_bytes > 0 and request.max_bytes > 0 else 0
        self._max_bytes = request.max_bytes
        self._answer = Answer(self._topic, version, self._bound)

    def answer(
        self, broker: Broker, session: Session, frame: memoryview, correlation_id: int
    ) -> Parts | WaitingFetch | None:
        topic = self._topic
        name = topic if isinstance(topic, str) else broker.store.image.topic_names.get(topic)
        if name is None:
            return None
        targets, is_read_up = self._targets(broker, name, frame)
        if not targets or not session.allows(Operation.READ, ResourceType.TOPIC, name):
            return None
        if not is_read_up:
            return self.told(broker, targets, correlation_id)
        if self._max_wait_ms <= 0 or not self.may_wait(targets):
            return None
        call = Call(self._api, self._version, self._client_id, session, correlation_id, None)
        return WaitingFetch(broker, self, call, frame, targets, self._max_wait_ms)

    def may_wait(self, targets: list[Wanted]) -> bool:
        """Whether there is nothing to be told of any of them until it changes."""
        bound = self._bound
        for _, partition, leader_epoch, offset, _ in targets:
            if not partition.is_read_up(offset, bound, leader_epoch):
                return False
        return True

    def told(self, broker: Broker, targets: list[Wanted], correlation_id: int) -> Parts | None:
        """The answer, where there is enough to send, all of it in memory, and nothing else to be told."""
        most = room = min(self._max_bytes, broker.config["fetch.max.bytes"])
        bound, found = self._bound, 0
        reads: list[tuple[int, PartitionRead, FileSlice | None]] = []
        for index, partition, leader_epoch, offset, max_bytes in targets:
            read = partition.fetch_at_once(offset, min(max_bytes, room), bound, leader_epoch, min_one=not found)
            if read is None:
                return None
            part = read.slice
            assert part is None or isinstance(part, FileSlice)  # what is streamed is in remote storage
            if part is not None:
                found += part.size
                room = max(room - part.size, 0)
            reads.append((index, read, part))
        if found < self._min_bytes and found < most:
            return None
        told: list[tuple[int, PartitionRead, FileSlice | Buffer]] = []
        for index, read, part in reads:
            records = _sendable(part)
            if records is None:
                return None
            told.append((index, read, records))
        return self._answer.parts(correlation_id, told)

    def _targets(self, broker: Broker, name: str, frame: memoryview) -> tuple[list[Wanted], bool]:
        """What is asked for, and whether the client has read all of that; nothing where it is understood otherwise."""
        at, known, committed = self._size, broker.replicas.partitions, self._bound == Bound.LAST_STABLE_OFFSET
        if self._flexible:
            number, at, each = frame[at] - 1, at + 1, _FLEXIBLE_PARTITION
        else:
            number, at, each = int.from_bytes(frame[at : at + 4], "big"), at + 4, _PARTITION
        if not 0 < number <= MOST_PARTITIONS:
            return _NOTHING
        end = at + number * each.size
        if not _ends(frame[end:], self._version):
            return _NOTHING
        targets: list[Wanted] = []
        is_read_up = True
        for asked in each.iter_unpack(frame[at:end]):
            if self._flexible:
                index, leader_epoch, offset, last_fetched_epoch, _, max_bytes, tags = asked
                if last_fetched_epoch >= 0 or tags:
                    return _NOTHING
            else:
                index, leader_epoch, offset, _, max_bytes = asked
            partition = known.get((name, index))
            log = None if partition is None else partition.log
            if partition is None or log is None or max_bytes < 0:
                return _NOTHING
            if self._topic is not name and partition.topic_id != self._topic:
                return _NOTHING
            if offset < (log.last_stable_offset if committed else log.high_watermark):
                is_read_up = False
            targets.append((index, partition, leader_epoch, offset, max_bytes))
        if number > 1 and len({target[0] for target in targets}) < number:
            return _NOTHING
        return targets, is_read_up
