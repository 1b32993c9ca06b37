"""What all logs of a broker share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.config.definition import MAX_LONG
from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.ports.files import FileSystem
from kwire.ports.randomness import Randomness
from kwire.ports.workers import LocalWorkers, Workers
from kwire.storage.chores import Chores
from kwire.storage.open_files import OpenFiles
from kwire.storage.register import Register

if TYPE_CHECKING:
    from kwire.storage.log import Log

DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000


@dataclass(slots=True)
class StorageServices:
    """The ports a log uses, and what bounds and orders the work of all logs together."""

    files: FileSystem
    executor: Executor
    workers: Workers
    clock: Clock
    randomness: Randomness
    chores: Chores
    open_files: OpenFiles
    producer_expiration_ms: int
    """producer.id.expiration.ms"""
    verifies_transactions: bool
    """transaction.partition.verification.enable"""
    flushed_by_time: Register = field(default_factory=Register)
    """Those with a flush.ms."""
    reserving: Register = field(default_factory=Register)
    """Those whose active segment has a reserve, or had one a second ago."""
    compacted: Register = field(default_factory=Register)
    """Those that the cleaner looks at."""

    def configured(self, log: Log) -> None:
        """What upkeep and the cleaner have to do with the log goes by its configuration, which is a new one."""
        for register, belongs in (
            (self.flushed_by_time, log.config.flush_ms < MAX_LONG),
            (self.compacted, log.config.compacted),
        ):
            if belongs:
                register.add(log)
            else:
                register.discard(log)

    def forget(self, log: Log) -> None:
        """Upkeep and the cleaner have nothing to do with that log any more."""
        for register in (self.flushed_by_time, self.reserving, self.compacted):
            register.discard(log)

    @classmethod
    def of(
        cls,
        files: FileSystem,
        executor: Executor,
        clock: Clock,
        randomness: Randomness,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        *,
        workers: Workers | None = None,
        verifies_transactions: bool = True,
    ) -> StorageServices:
        """Services on these ports. `workers`: those that the executor makes, unless given."""
        return cls(
            files,
            executor,
            workers or LocalWorkers(executor),
            clock,
            randomness,
            Chores(executor, clock),
            OpenFiles(),
            producer_expiration_ms,
            verifies_transactions,
        )
