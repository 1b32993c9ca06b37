"""The transaction coordinator of this broker: its shards, and what their machines want done.

The state machines are imported when a partition of __transaction_state is first led, which keeps the start short.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from kwire.broker.marker_appends import EndMarker
from kwire.broker.peers import Peers
from kwire.broker.transaction_markers import FIRST_PAUSE, LONGEST_PAUSE, TransactionMarkers
from kwire.coordinator.runtime.coordinator import Coordinator
from kwire.coordinator.runtime.outcome import Now, Outcome, Producer
from kwire.coordinator.runtime.shard import Shard
from kwire.metadata.features import transaction_version
from kwire.metadata.names import TRANSACTION_STATE
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.types import TopicPartition

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.coordinator.runtime.log import CoordinatorLog
    from kwire.coordinator.transactions.effects import MarkersDue
    from kwire.coordinator.transactions.machine import TransactionMachine

T = TypeVar("T")
Operation = Callable[["TransactionMachine", Now, int | None], Outcome[T]]
"""Of the machine, the time, and a producer id that nobody has; None at first."""

_NOTHING = trio.Event()
"""Never set."""

logger = logging.getLogger(__name__)


class Transactions:
    """For handlers: `write` and `coordinator`; for other brokers, produce and offset commits: `add_partitions`."""

    def __init__(self, broker: Broker) -> None:
        self.coordinator: Coordinator[TransactionMachine] = Coordinator("transaction", self._shard)
        self._broker = broker
        self.peers = Peers(broker)
        self._markers = TransactionMarkers(broker, self.peers)
        self._under_way: dict[str, trio.Event] = {}
        """By transactional id whose markers are being written: set when its transaction is complete, or given up."""
        self._jobs, self._begun = trio.open_memory_channel[Callable[[], Awaitable[None]]](math.inf)

    async def run(self) -> None:
        """Loads shards, runs deadlines, writes markers, until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.coordinator.run)
                async for job in self._begun:
                    nursery.start_soon(job)
        finally:
            self.peers.close()

    def coordinator_of(self, transactional_id: str) -> int:
        """The id of the broker that coordinates it. Raises COORDINATOR_NOT_AVAILABLE."""
        index = self.coordinator.partition_of(transactional_id)
        state = self._broker.store.image.partition(TRANSACTION_STATE, index)
        if state is None or state.leader < 0:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return state.leader

    async def write(self, transactional_id: str, operation: Operation[T]) -> T:
        """The operation's response once what it writes is committed; with a producer id, if it asks for one.

        Raises what the operation raises, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
        UNKNOWN_SERVER_ERROR for what is too large to be written.
        """
        return await self._write(self.coordinator.shard_of(transactional_id), operation)

    async def _write(self, shard: Shard[TransactionMachine], operation: Operation[T]) -> T:
        from kwire.coordinator.transactions.effects import ProducerIdNeeded

        try:
            try:
                return await shard.write(lambda machine, now: operation(machine, now, None))
            except ProducerIdNeeded:
                new_producer_id = await self._broker.producer_ids.next()
                return await shard.write(lambda machine, now: operation(machine, now, new_producer_id))
        except KafkaError as error:
            raise KafkaError(_AS_COORDINATOR.get(error.code, error.code), error.message) from error

    async def write_when_complete(self, transactional_id: str, operation: Operation[T]) -> T:
        """The same for the first operation of a transaction: the markers of the one before may still be under way.

        They get `add.partitions.to.txn.retry.backoff.max.ms` before CONCURRENT_TRANSACTIONS is raised.
        """
        patient_until = self.patient_until()
        while True:
            try:
                return await self.write(transactional_id, operation)
            except KafkaError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or trio.current_time() >= patient_until:
                    raise
            await self.back_off(transactional_id)

    def patient_until(self) -> float:
        """Until when, by Trio's clock, who is told CONCURRENT_TRANSACTIONS now is to ask again."""
        return trio.current_time() + self._broker.config["add.partitions.to.txn.retry.backoff.max.ms"] / 1000

    async def back_off(self, transactional_id: str) -> None:
        """Waits before that: until the markers are written, where this broker knows when that is."""
        with trio.move_on_after(self._broker.config["add.partitions.to.txn.retry.backoff.ms"] / 1000):
            await self._under_way.get(transactional_id, _NOTHING).wait()

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
    ) -> dict[TopicPartition, ErrorCode]:
        """Adds the partitions to the producer's transaction, or looks whether they are in it (KIP-890).

        What brokers ask each other by AddPartitionsToTxn v4 and later. TRANSACTION_ABORTABLE: the partition is not in
        it. Other than NONE and that, all partitions have the same code.
        """
        from kwire.coordinator.transactions.partitions import add_partitions, verify_partitions
        from kwire.coordinator.transactions.transaction import EPOCH_BUMP

        producer = Producer(producer_id, epoch)
        try:
            if verify_only:
                return self.coordinator.shard_of(transactional_id).read(
                    lambda machine, now: verify_partitions(machine, transactional_id, producer, partitions)
                )
            await self.write(
                transactional_id,
                lambda machine, now, _: add_partitions(
                    machine, now, transactional_id, producer, partitions, EPOCH_BUMP
                ),
            )
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(partitions, ErrorCode.NONE)

    def transaction_version(self) -> int:
        """The finalized level of the feature transaction.version."""
        return transaction_version(self._broker.store.image)

    def _shard(self, index: int, log: CoordinatorLog) -> Shard[TransactionMachine]:
        from kwire.coordinator.records import TopicRecords
        from kwire.coordinator.transactions.machine import TransactionMachine
        from kwire.protocol.coordinator_records.record_types import TRANSACTION_RECORD_TYPES

        broker = self._broker
        effects = _Effects(self)
        machine = TransactionMachine(lambda: broker.config, self.transaction_version, effects)
        effects.shard = Shard(
            log,
            machine,
            TopicRecords(TRANSACTION_RECORD_TYPES),
            broker.clock,
            write_timeout_s=broker.config["request.timeout.ms"] / 1000,
            load_bytes=broker.config["transaction.state.log.load.buffer.size"],
        )
        return effects.shard

    # What machines want done

    def finish(self, shard: Shard[TransactionMachine], due: MarkersDue) -> None:
        """Begins to write the markers of a decided transaction, and then its end."""
        done = self._under_way[due.transactional_id] = trio.Event()
        self._jobs.send_nowait(partial(self._finish, shard, due, done))

    def abort(self, shard: Shard[TransactionMachine], transactional_id: str, producer: Producer) -> None:
        """Begins to abort a transaction that is open for too long."""
        self._jobs.send_nowait(partial(self._abort, shard, transactional_id, producer))

    async def _finish(self, shard: Shard[TransactionMachine], due: MarkersDue, done: trio.Event) -> None:
        from kwire.coordinator.transactions.completion import complete

        transaction = due.transaction
        marker = EndMarker(
            transaction.producer, transaction.commits, shard.log.leader_epoch, transaction.client_version
        )
        try:
            # A coordinator that has just come may have read a decision that is not on all in-sync replicas yet.
            if shard.machine.transactions.committed(due.transactional_id) != transaction:
                await _persist(shard, due, lambda machine, now: Outcome(None))
            if await self._markers.write(due.transactional_id, marker, transaction.partitions, lambda: shard.active):
                await _persist(shard, due, lambda machine, now: complete(machine, now, due))
        except Exception:
            logger.exception("transaction not completed transactional_id=%r", due.transactional_id)
        finally:
            done.set()
            if self._under_way.get(due.transactional_id) is done:
                del self._under_way[due.transactional_id]

    async def _abort(self, shard: Shard[TransactionMachine], transactional_id: str, producer: Producer) -> None:
        """Aborts what is open for too long; where that fails, it is still too long at the next look."""
        from kwire.coordinator.transactions.timeouts import abort

        try:
            await self._write(
                shard,
                lambda machine, now, new_producer_id: abort(
                    machine, now, transactional_id, producer, new_producer_id=new_producer_id
                ),
            )
        except KafkaError as error:
            logger.info("timed-out transaction not aborted transactional_id=%r error=%s", transactional_id, error)
        except Exception:
            logger.exception("timed-out transaction not aborted transactional_id=%r", transactional_id)
        else:
            logger.info("timed-out transaction aborted transactional_id=%r", transactional_id)


async def _persist(
    shard: Shard[TransactionMachine], due: MarkersDue, operation: Callable[[TransactionMachine, Now], Outcome[None]]
) -> None:
    """Repeats an operation on what is due until what it writes, or has seen, is committed; or another coordinates."""
    pause = FIRST_PAUSE
    while shard.active:
        try:
            await shard.write(operation)
        except KafkaError as error:
            if error.code not in _AGAIN:
                if error.code is not _OVER:
                    logger.error("end not written transactional_id=%r error=%s", due.transactional_id, error)
                return
        else:
            return
        await trio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


_AGAIN = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT)
"""NOT_COORDINATOR is also said where the volume has no room: who still coordinates the transaction must end it."""

_OVER = ErrorCode.INVALID_TXN_STATE
"""What took too long has been committed since."""

_AS_COORDINATOR = {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class _Effects:
    """What one shard's machine wants done."""

    shard: Shard[TransactionMachine]

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def markers_due(self, due: MarkersDue) -> None:
        self._transactions.finish(self.shard, due)

    def timed_out(self, transactional_id: str, producer: Producer) -> None:
        self._transactions.abort(self.shard, transactional_id, producer)
