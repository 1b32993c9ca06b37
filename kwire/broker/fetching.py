"""Reading many partitions for one fetch, and waiting until there is enough to send.

A read gives ranges of files, never bytes, so reading again after a wake-up costs little: only the partitions that
changed are read again until the fetch has what it asked for. Where they have more together than it takes, all are read
once more, in order, under `max_bytes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.cluster.partition import Partition
from kwire.cluster.replica import Bound, PartitionRead
from kwire.ports.alarms import Alarms
from kwire.ports.at_once import Signal, needs_task
from kwire.ports.clock import Clock
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.broker.fetch_sessions import CachedPartition, FetchSession
    from kwire.cluster.tiering.tiering import Tiering


_FUTURE_REPLICA: Final = -3
"""Apache Kafka's number for a log that a log of the same broker is copied to."""


class Target:
    """One partition of a fetch: what is asked of it, and the latest read of it or why there is none.

    With OFFSET_MOVED_TO_TIERED_STORAGE there is both, since the answer says where the log begins.
    """

    __slots__ = ("asked", "error", "partition", "read", "size", "topic", "urgent")

    def __init__(
        self, asked: CachedPartition, topic: str, partition: Partition | None, error: KafkaError | None
    ) -> None:
        self.asked = asked
        self.topic = topic
        self.partition = partition
        self.error = error
        self.read: PartitionRead | None = None
        self.size = 0
        """Bytes of record batches that the read found."""
        self.urgent = error is not None
        """Whether the client must hear of this at once, however little there is to send."""

    def take(self, read: PartitionRead | None, error: KafkaError | None = None) -> None:
        """Notes what a read brought."""
        self.read = read
        # With its traceback it would have the frame that has this: a cycle.
        self.error = None if error is None else error.with_traceback(None)
        self.size = 0
        self.urgent = error is not None
        if read is not None:
            if read.slice is not None:
                self.size = len(read.slice)
            if read.diverging is not None or read.tiered:
                self.urgent = True


class RemoteShare(NamedTuple):
    """A target that is to be read from remote storage, and what of the answer's room it has."""

    target: Target
    max_bytes: int
    at_least_one: bool


class Reader:
    """Reads targets for one caller."""

    __slots__ = ("_bound", "_clock", "_replica_epoch", "_replica_id", "_tiering", "max_bytes")

    def __init__(
        self,
        clock: Clock,
        max_bytes: int,
        *,
        bound: Bound,
        replica_id: int,
        replica_epoch: int,
        tiering: Tiering | None = None,
    ) -> None:
        """`max_bytes` bounds all partitions together; the first batch that is found always comes.

        `tiering`: where offsets are looked for that are in remote storage only.
        """
        self._tiering = tiering
        self._clock = clock
        self.max_bytes = max_bytes
        self._bound = bound
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch

    def turn(self, targets: int) -> Turn | None:
        """For the reads of so many targets one by one; None where there is nothing to share between."""
        return Turn(self._clock) if targets > 1 else None

    def is_quiet(self, target: Target) -> bool:
        """Whether there is nothing to be said of it beyond this read until it changes."""
        read = target.read
        if read is None or target.error is not None or read.slice is not None or read.diverging is not None:
            return False
        end = read.log_end_offset
        if self._bound == Bound.HIGH_WATERMARK:
            end = read.high_watermark
        elif self._bound == Bound.LAST_STABLE_OFFSET:
            end = read.last_stable_offset
        return not read.tiered and target.asked.fetch_offset >= end

    def falls_short(self, target: Target) -> bool:
        """Whether the read found something, and one that waits finds no more: it is sent however little it is, as by
        Apache Kafka."""
        bound = self._bound if self._replica_id < 0 else Bound.LOG_END
        return (
            target.size > 0
            and target.partition is not None
            and target.partition.is_behind(target.asked.fetch_offset, bound)
        )

    async def read_all(self, targets: Collection[Target], *, record: bool) -> tuple[int, bool]:
        """Reads every target in order; returns the bytes found, and whether one of the targets is urgent.

        `record`: whether a follower's fetch offsets count as its progress. Only the first look at a request does: what
        the follower has is what it had when it asked.
        """
        room, found, urgent = self.max_bytes, 0, False
        remote: list[RemoteShare] = []
        turn = self.turn(len(targets))
        for target in targets:
            first = not found and not remote
            size = await self.read(target, room, at_least_one=first, record=record)
            found += size
            urgent = urgent or target.urgent
            if target.read is not None and target.read.tiered:
                # What it will bring is not known yet: as much as it may.
                size = min(target.asked.max_bytes, room)
                remote.append(RemoteShare(target, size, first))
            room = max(room - size, 0)
            if turn is not None:
                await turn.share()
        if remote and self._tiering is not None:
            from kwire.broker.tiered import fetch_tiered

            await needs_task()
            await fetch_tiered(self._tiering, remote, self._bound)
        return found, urgent

    async def read(self, target: Target, room: int, *, at_least_one: bool, record: bool = False) -> int:
        """Reads one target, up to `room` bytes and what the client set for it; returns the bytes found."""
        partition, asked = target.partition, target.asked
        if partition is None:
            return 0
        max_bytes = min(asked.max_bytes, room)
        try:
            if max_bytes < 0:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max length {max_bytes} for log read")
            if self._replica_id >= 0:
                read = await partition.fetch_for_follower(
                    self._replica_id,
                    asked.fetch_offset,
                    max_bytes,
                    current_leader_epoch=asked.current_leader_epoch,
                    last_fetched_epoch=asked.last_fetched_epoch,
                    log_start_offset=asked.follower_log_start_offset,
                    broker_epoch=self._replica_epoch,
                    min_one=at_least_one,
                    record=record,
                )
            else:
                read = await partition.fetch(
                    asked.fetch_offset,
                    max_bytes,
                    self._bound,
                    current_leader_epoch=asked.current_leader_epoch,
                    last_fetched_epoch=asked.last_fetched_epoch,
                    min_one=at_least_one,
                )
        except KafkaError as error:
            target.take(None, error)
        except OSError as error:
            target.take(None, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        else:
            if read.tiered and self._builds_on_it:
                read = read._replace(tiered=False, last_stable_offset=-1, aborted=None)
                target.take(read, KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE))
            else:
                target.take(read)
        return target.size

    @property
    def _builds_on_it(self) -> bool:
        """Whether who reads makes a log of it, so that he has to begin with what is here (KIP-405)."""
        return self._replica_id >= 0 or self._replica_id == _FUTURE_REPLICA


class FetchWait:
    """Waits until the targets together hold `min_bytes`, one of them is urgent or falls short, or the time is up."""

    def __init__(
        self,
        session: FetchSession,
        reader: Reader,
        targets: dict[CachedPartition, Target],
        find: Callable[[CachedPartition], Target],
        alarms: Alarms,
        *,
        found: int,
        min_bytes: int,
        deadline: float,
    ) -> None:
        """`find` makes the target of a partition, and has the session watch it.

        `found`: the bytes that the targets hold together. `deadline`: seconds, on the clock of `alarms`.
        """
        self._session = session
        self._reader = reader
        self._targets = targets
        self._find = find
        self._min_bytes = min_bytes
        self._alarms = alarms
        self._deadline = deadline
        self._found = found
        self._woken: Signal | None = None
        """Present while it waits for something to happen."""
        self._hurried = False

    def hurry(self) -> None:
        """Ends the wait."""
        self._hurried = True
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None:
            self._woken.set()

    async def until_enough(self) -> None:
        """Returns when the answer is due, with the targets as they then are."""
        session = self._session
        session.on_due = self._wake
        alarm = self._alarms.at(self._deadline, self.hurry)
        try:
            while not self._hurried:
                if session.any_due:
                    if await self._enough():
                        break
                else:
                    self._woken = Signal()
                    await self._woken.wait()
                    self._woken = None
        finally:
            alarm.cancel()
            if session.on_due == self._wake:  # else another fetch of the session waits by now
                session.on_due = None
        if self._found > self._reader.max_bytes or self._one_too_large():
            in_order = sorted(self._targets.values(), key=lambda target: target.asked.order)
            await self._reader.read_all(in_order, record=False)

    def _one_too_large(self) -> bool:
        """Whether a target has more than the client takes of it, or may have, once it is read in its turn."""
        for cached, target in self._targets.items():
            if target.size > cached.max_bytes or (target.read is not None and target.read.tiered):
                return True
        return False

    async def _enough(self) -> bool:
        """Looks at those that are due."""
        now = False
        due = deque(self._session.take_due())
        turn = self._reader.turn(len(due))
        try:
            while due and not self._hurried:
                cached = due[0]
                target = self._targets.get(cached)
                if target is None or target.partition is None:
                    target = self._find(cached)
                else:
                    self._session.watch(cached, target.partition)
                before = target.size
                self._found += await self._reader.read(target, cached.max_bytes, at_least_one=True) - before
                self._targets[cached] = target
                now = now or target.urgent
                if target.size and self._found < self._min_bytes:
                    now = now or self._reader.falls_short(target)
                due.popleft()
                if turn is not None:
                    await turn.share()
        finally:
            for cached in due:  # the time was up: the next fetch looks at them
                self._session.make_due(cached)
        return now or self._found >= self._min_bytes
