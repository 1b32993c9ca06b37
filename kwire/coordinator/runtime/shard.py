"""One partition of an internal topic and its state: loading, writing, reading.

    shard = Shard(log, machine, codec, clock, write_timeout_s)
    await shard.load()                                      replays the log
    response = await shard.write(operation)                 operation(machine, now) -> Outcome
    response = shard.read(operation)                        operation(machine, now) -> response
    shard.close()                                           this broker does not lead the partition any more

Writes are appended in the order of their operations. While one append is under way, those that come meanwhile are
gathered into the next batch.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Generic, TypeVar

import trio

from kwire.coordinator.runtime.log import CoordinatorLog
from kwire.coordinator.runtime.machine import RecordCodec, StateMachine
from kwire.coordinator.runtime.outcome import Now, Outcome, Pending, Producer
from kwire.coordinator.runtime.wakes import Wakes
from kwire.ports.at_once import needs_task, shielded
from kwire.ports.clock import Clock
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch, most_bytes
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.control import build_end_txn_marker, read_end_txn_marker
from kwire.protocol.records.header import HEADER_SIZE, BatchHeader, iter_batches
from kwire.protocol.records.record import Record, iter_records

M = TypeVar("M", bound=StateMachine)
T = TypeVar("T")

logger = logging.getLogger(__name__)

_RECORDS_PER_TURN = 200
"""Records replayed before other tasks get their turn."""

_NOT_COORDINATOR = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR}
_NOT_AVAILABLE = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
}
_OF_ALL = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}
_DONE = object()


class _Write:
    """What one operation wants appended, from then until it is committed or has failed."""

    __slots__ = ("done", "encoded", "end", "number", "outcome", "queued", "size", "turn")

    def __init__(self, number: int, outcome: Outcome[Any], encoded: list[tuple[bytes, bytes | None]], size: int):
        self.number = number
        self.outcome = outcome
        self.encoded = encoded
        self.size = size
        self.end = -1
        self.done: Pending[Any] = Pending()
        self.queued = True
        """Until its append begins, or it has failed."""
        self.turn: trio.Event | None = None
        """While who submitted it waits for that, or for his turn to append."""

    def leaves_queue(self) -> None:
        self.queued = False
        if self.turn is not None:
            self.turn.set()

    def joins(self, other: _Write) -> bool:
        """Whether both may be in one batch."""
        mine, theirs = self.outcome, other.outcome
        return (
            mine.marker is None
            and theirs.marker is None
            and mine.producer == theirs.producer
            and mine.verification is theirs.verification
        )


class Shard(Generic[M]):
    """The runtime of one partition. For the event loop's thread only."""

    def __init__(
        self,
        log: CoordinatorLog,
        machine: M,
        codec: RecordCodec,
        clock: Clock,
        *,
        write_timeout_s: float = 5.0,
        load_bytes: int = 5 << 20,
        compression: Compression = Compression.NONE,
    ) -> None:
        """`write_timeout_s`: after which an operation whose records are not committed answers REQUEST_TIMED_OUT.

        `load_bytes` are read at once while loading, more only where one batch is larger.
        """
        self.machine = machine
        self.log = log
        self._codec = codec
        self._clock = clock
        self._write_timeout_s = write_timeout_s
        self._load_bytes = load_bytes
        self._compression = compression
        self._refusal: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        self._queue: deque[_Write] = deque()
        self._uncommitted: deque[_Write] = deque()
        self._appending: list[_Write] = []
        self._busy = False
        self.wakes = Wakes()
        """By what the callers that wait for an answer are woken; all shards of a coordinator have the same."""

    def now(self) -> Now:
        return Now(self._clock.wall_ms(), int(self._clock.monotonic() * 1000))

    # Life

    async def load(self) -> None:
        """Replays the log; from then on the shard answers.

        Ends early where it is closed meanwhile. Raises KafkaError where the log cannot be read: then it goes on
        refusing, with NOT_COORDINATOR.
        """
        try:
            replayed, upto = 0, self.log.start
            while upto < self.log.end and self._refusal is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                data = await self.log.read(upto, self._load_bytes)
                if not data:
                    break
                for header, batch in iter_batches(data):
                    replayed += self._load_batch(header, batch)
                    upto = header.next_offset
                    if replayed >= _RECORDS_PER_TURN:
                        replayed = 0
                        await trio.lowlevel.checkpoint()
        except BaseException:
            self._refusal = ErrorCode.NOT_COORDINATOR
            raise
        self.serve()

    def serve(self) -> None:
        """Begins to answer, unless closed: everything has been replayed, or there is nothing to replay."""
        if self._refusal is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._refusal = None
            self.log.on_progress(self._progressed)
            self._progressed()
            self.machine.loaded(self.now())

    def _load_batch(self, header: BatchHeader, batch: memoryview) -> int:
        """Replays a batch; one behind the high watermark is committed when that has come past it. Returns its size."""
        if header.next_offset <= self.log.committed:
            return self._replay_batch(header, batch)
        timeline = self.machine.timeline
        write = _Write(timeline.begin(), Outcome(None), [], 0)
        try:
            count = self._replay_batch(header, batch)
        finally:
            timeline.end()
        write.end = header.next_offset
        self._uncommitted.append(write)
        return count

    def _replay_batch(self, header: BatchHeader, batch: memoryview) -> int:
        producer = Producer(header.producer_id, header.producer_epoch)
        if header.control:
            marker = read_end_txn_marker(batch)
            if marker is not None:
                self.machine.replay_marker(producer, commit=marker.commit)
            return 1
        of = producer if header.transactional else None
        for record in iter_records(batch):
            if record.key is None or record.offset < self.log.start:
                continue  # written by somebody else, since a coordinator's records have keys; or deleted
            decoded = self._codec.decode(record.key, record.value)
            if decoded is not None:
                self.machine.replay(decoded, of)
        return header.count

    def close(self) -> None:
        """Answers everybody who waits with NOT_COORDINATOR, and every operation from now on."""
        if self._refusal is None:
            self.log.close()
            self._refusal = ErrorCode.NOT_COORDINATOR
            # First, since in a group of which the record is not committed somebody may wait as well.
            self.machine.unloaded(self.now())
            self._fail_from(0, KafkaError(ErrorCode.NOT_COORDINATOR))
        self._refusal = ErrorCode.NOT_COORDINATOR

    @property
    def active(self) -> bool:
        """Whether operations are served."""
        return self._refusal is None

    def _usable(self) -> M:
        if self._refusal is not None:
            raise KafkaError(self._refusal)
        return self.machine

    # Operations

    def read(self, operation: Callable[[M, Now], T]) -> T:
        """Raises what the operation raises, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        return operation(self._usable(), self.now())

    async def write(self, operation: Callable[[M, Now], Outcome[T]]) -> T:
        """The operation's response, once what it writes is committed, and what it has seen of others' writes.

        A caller that is cancelled meanwhile undoes nothing; one that stands still without a task amid the append and is
        closed takes the write back, and those behind it have to try again. Raises what the operation raises and
        COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE.
        """
        if self._busy:
            await needs_task()  # to wait for its turn to append; before it has changed anything
        outcome = operation(self._usable(), self.now())
        deadline = trio.current_time() + self._write_timeout_s
        done = await self._submit(outcome, deadline) if outcome.writes else self._last_write(outcome)
        if done is not None:
            result = await _answer(done, self.wakes, deadline)
            if isinstance(result, KafkaError):
                raise result if outcome.writes else _of_another(result)
        if not isinstance(outcome.response, Pending):
            return outcome.response
        answer = await _answer(outcome.response, self.wakes)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    async def run_due(self, now_ms: int) -> None:
        """Runs the operations whose deadlines have come; where they take long, others have their turn in between."""
        turn = Turn(self._clock)
        for operation in self.machine.deadlines.pop_due(now_ms):
            if self._refusal is not None:
                return
            try:
                outcome = operation(self.now())
                if outcome is not None and outcome.writes:
                    await self._submit(outcome, trio.current_time() + self._write_timeout_s)
            except KafkaError as error:
                logger.warning("coordinator's own operation failed log=%r error=%s", self.log, error)
            except Exception:
                logger.exception("coordinator's own operation failed log=%r", self.log)
            await turn.share()

    # Writing

    def _last_write(self, outcome: Outcome[Any]) -> Pending[Any] | None:
        """The newest write that is not committed yet. What waits for another operation need not wait for it."""
        if isinstance(outcome.response, Pending):
            return None
        for writes in (self._queue, self._appending, self._uncommitted):
            if writes:
                return writes[-1].done
        return None

    async def _submit(self, outcome: Outcome[Any], deadline: float) -> Pending[Any]:
        """Returns when the append has been begun, or has not been begun by the deadline."""
        write = self._prepare(outcome)
        self._queue.append(write)
        await shielded(self._begin(write, deadline))  # others' writes may be among those that are appended
        return write.done

    async def _begin(self, write: _Write, deadline: float) -> None:
        if not self._busy or await self._turn(write, deadline):
            await self._append_from(write)

    async def _turn(self, write: _Write, deadline: float) -> bool:
        """Waits while somebody else appends; whether it is now for this write's caller to go on."""
        turn = write.turn = trio.Event()
        with trio.move_on_at(deadline):
            await turn.wait()
        write.turn = None
        return turn.is_set() and write.queued

    async def _append_from(self, write: _Write) -> None:
        """Appends until this write is out of the queue, and then whatever nobody waits to go on with.

        So that no caller waits for his response for as long as others write.
        """
        self._busy, handed_over = True, False
        try:
            while self._queue and not handed_over:
                await self._append_next()
                handed_over = not write.queued and self._hand_over()
        finally:
            self._busy = handed_over

    def _hand_over(self) -> bool:
        for waiting in self._queue:
            if waiting.turn is not None:
                waiting.turn.set()
                return True
        return False

    def _prepare(self, outcome: Outcome[Any]) -> _Write:
        """Encodes the records and replays them into the state."""
        timeline = self.machine.timeline
        number = timeline.begin()
        try:
            encoded = [self._codec.encode(record) for record in outcome.records]
            size = HEADER_SIZE + sum([most_bytes(key, value) for key, value in encoded])
            if size > self.log.max_batch_bytes:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"The operation writes {size} bytes, more than max.message.bytes of its topic",
                )
            if outcome.marker is not None:
                self.machine.replay_marker(outcome.marker.producer, commit=outcome.marker.commit)
            elif outcome.replay:
                for record in outcome.records:
                    self.machine.replay(record, outcome.producer)
        except BaseException as error:
            timeline.end()
            timeline.revert(number)
            if outcome.failed is not None:
                outcome.failed(
                    error if isinstance(error, KafkaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), self.now()
                )
            raise
        timeline.end()
        return _Write(number, outcome, encoded, size)

    async def _append_next(self) -> None:
        writes = self._appending = self._next_batch()
        outcome = writes[0].outcome
        version = 0 if outcome.marker is None else outcome.marker.transaction_version
        try:
            end = await self.log.append(
                self._batch(writes), transaction_version=version, verification=outcome.verification
            )
        except KafkaError as error:
            self._fail_from(writes[0].number, as_coordinator(error))
        except BaseException:
            self._fail_from(writes[0].number, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise
        else:
            if self._appending:  # not closed meanwhile
                for write in writes:
                    write.end = end
                self._uncommitted.extend(writes)
                self._appending = []
                self._progressed()

    def _next_batch(self) -> list[_Write]:
        queue = self._queue
        writes = [queue.popleft()]
        room = self.log.max_batch_bytes - writes[0].size
        while queue and writes[0].joins(queue[0]) and queue[0].size <= room:
            room -= queue[0].size
            writes.append(queue.popleft())
        for write in writes:
            write.leaves_queue()
        return writes

    def _batch(self, writes: list[_Write]) -> bytes:
        outcome, wall_ms = writes[0].outcome, self._clock.wall_ms()
        marker, producer = outcome.marker, outcome.producer
        if marker is not None:
            return build_end_txn_marker(
                marker.producer.id,
                marker.producer.epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp=wall_ms,
            )
        pairs = (pair for write in writes for pair in write.encoded)
        records = [Record(offset, wall_ms, key, value, []) for offset, (key, value) in enumerate(pairs)]
        if producer is None:
            return build_batch(records, compression=self._compression)
        return build_batch(
            records,
            compression=self._compression,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transactional=True,
        )

    def _progressed(self) -> None:
        """Lets go what is committed."""
        committed, uncommitted = self.log.committed, self._uncommitted
        while uncommitted and uncommitted[0].end <= committed:
            write = uncommitted.popleft()
            self.machine.timeline.commit(write.number)
            if write.outcome.committed is not None:
                write.outcome.committed(self.now())
            write.done.answer(_DONE)

    def _fail_from(self, number: int, error: KafkaError) -> None:
        """Takes the state back to before this write; it and all that came after it have failed."""
        self.machine.timeline.revert(number)
        failed = [(write, error) for write in (*self._uncommitted, *self._appending) if write.number >= number]
        failed += [(write, _of_another(error)) for write in self._queue]
        for write in self._queue:
            write.leaves_queue()
        self._uncommitted = deque(write for write in self._uncommitted if write.number < number)
        self._appending = []
        self._queue.clear()
        for write, told in failed:
            if write.outcome.failed is not None:
                write.outcome.failed(told, self.now())
            write.done.answer(told)


async def _answer(pending: Pending[T], wakes: Wakes, deadline: float = inf) -> T | KafkaError:
    """Waits for the answer. REQUEST_TIMED_OUT at the deadline, if there is one."""
    if not pending.done:
        await needs_task()
        event = trio.Event()
        pending.then(lambda: wakes.wake(event))
        with trio.move_on_at(deadline):
            await event.wait()
    if pending.result is None:
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    return pending.result


def _of_another(error: KafkaError) -> KafkaError:
    """What those are told who have only seen what the failed write did.

    What is wrong with its records or its producer is none of theirs: they are to try again.
    """
    return error if error.code in _OF_ALL else KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def as_coordinator(error: KafkaError) -> KafkaError:
    """What an append's error means to a coordinator's client."""
    if error.code in _NOT_COORDINATOR:
        return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
    if error.code in _NOT_AVAILABLE:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return error
