"""The log of a partition for who keeps state in it: a coordinator, on the broker that leads the partition.

    data = await log.read(log.start, 1 << 20)  … and on until `log.end`: what is to be replayed
    end = await log.append(batch)              it counts when `log.committed` has come to `end`
    log.on_progress(call)                      `call()` at every change of the partition

It is of one leader epoch: in the next one there is another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.cluster.partition import ALL
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.validated import Origin

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.ports.files import Buffer
    from kwire.storage.log import Log
    from kwire.storage.verification import VerificationGuard


class LeaderLog:
    """One partition's log in one leader epoch of this broker. Offsets are ints; ends are exclusive."""

    __slots__ = ("_call", "_log", "_partition", "leader_epoch")

    def __init__(self, partition: Partition, log: Log) -> None:
        """`log` is the partition's, which this broker leads now."""
        self.leader_epoch = partition.leader_epoch
        self._partition = partition
        self._log = log
        self._call: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<{self._partition.name} led in epoch {self.leader_epoch}>"

    @property
    def start(self) -> int:
        """The first offset there is."""
        return self._log.log_start_offset

    @property
    def end(self) -> int:
        """The log end offset."""
        return self._log.log_end_offset

    @property
    def committed(self) -> int:
        """The high watermark: what is before it is on all in-sync replicas."""
        return self._log.high_watermark

    @property
    def max_batch_bytes(self) -> int:
        """The topic's `max.message.bytes`."""
        return self._log.config.max_message_bytes

    async def append(
        self,
        batch: Buffer,
        *,
        origin: Origin = Origin.COORDINATOR,
        transaction_version: int = 0,
        verification: VerificationGuard | None = None,
    ) -> int:
        """Appends one batch (base offset 0, control batches too) with acks=all; returns the log's end behind it.

        `transaction_version`: that under which a marker is written; `verification`: of the partition, for the first
        batch of a client's transaction.

        Raises NOT_LEADER_OR_FOLLOWER once the leader epoch is over, and what `Partition.append` raises.
        """
        partition = self._partition
        if partition.leader_epoch != self.leader_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Leader epoch {self.leader_epoch} of {partition.name} is over"
            )
        appended = await partition.append(
            batch,
            ALL,
            origin=origin,
            transaction_version=transaction_version,
            verification=verification,
        )
        return appended.required_offset

    async def read(self, offset: int, max_bytes: int) -> bytes:
        """The batches from the one with `offset` on, read in a worker thread: about `max_bytes`, at least one batch.

        The last may be incomplete, and then is not the first; nothing at the log's end. Raises OFFSET_OUT_OF_RANGE,
        KAFKA_STORAGE_ERROR.
        """
        log = self._log
        found = await log.fetch(offset, max_bytes, min_one=True)
        if found.slice is None:
            return b""
        try:
            return await log.services.executor.run(found.slice.read)
        except OSError as error:
            raise log.failed("read", error) from error

    def on_progress(self, call: Callable[[], None]) -> None:
        """`call` is called whenever `committed` may have moved, until `close`; it must not raise and must not wait."""
        self._call = call
        self._partition.watch(self)

    def wake(self, partition: Partition) -> None:
        """The partition changed."""
        if self._call is not None:
            self._call()

    def close(self) -> None:
        """No more calls."""
        self._call = None
        self._partition.unwatch(self)
