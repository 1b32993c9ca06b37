"""What all logs of a broker share."""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.ports.files import FileSystem
from kwire.ports.randomness import Randomness
from kwire.storage.chores import Chores
from kwire.storage.open_files import OpenFiles

DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000


@dataclass(slots=True)
class StorageServices:
    """The ports a log uses, and what bounds and orders the work of all logs together."""

    files: FileSystem
    executor: Executor
    clock: Clock
    randomness: Randomness
    chores: Chores
    open_files: OpenFiles = field(default_factory=OpenFiles)
    producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS
    """producer.id.expiration.ms"""

    @classmethod
    def of(cls, files: FileSystem, executor: Executor, clock: Clock, randomness: Randomness) -> StorageServices:
        """Services with everything else at its default."""
        return cls(files, executor, clock, randomness, Chores(executor, clock))
