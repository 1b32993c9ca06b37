"""Logs in memory for the tests of the storage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import trio

from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.ports.executor import Executor, InlineExecutor
from kwire.ports.files import FileSystem
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.randomness import SeededRandomness
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import iter_batches, read_header
from kwire.protocol.records.record import Record, iter_records
from kwire.storage import recovery
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.manager import LogManager
from kwire.storage.recovery import LogTask
from kwire.storage.services import StorageServices
from kwire.storage.validated import Origin, ValidatedBatch

T0 = 1_700_000_000_000
ROOT = "/data"
CLUSTER = "7d8X9wEhQ0iNjRJ6QKIW2A"
TOPIC_ID = bytes(range(16))


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = T0
        self._passed = 0

    def wall_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self._passed / 1000

    def advance(self, ms: int) -> None:
        self.now += ms
        self._passed += ms

    def set(self, ms: int) -> None:
        """What an administrator does to the time of day: `ms` from what it is."""
        self.now += ms


def config(**values: object) -> LogConfig:
    return LogConfig(**{"index_interval_bytes": 100, **values})  # type: ignore[arg-type]


class DirectExecutor:
    """Runs at once and lets nobody in between."""

    async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        return function(*arguments)


def run(function, *arguments, **options):  # type: ignore[no-untyped-def]
    """The result of an async function, in an event loop of its own."""
    return trio.run(partial(function, *arguments, **options))


class Place:
    """One log dir, in memory unless told, and the log `t-0` in it: opened, closed, killed, opened again."""

    def __init__(self, files: FileSystem | None = None, root: str = ROOT, **values: object) -> None:
        self.clock = ManualClock()
        self.executor: Executor = InlineExecutor()
        self.memory = MemoryFileSystem(self.clock)
        self.files = files or self.memory
        self.root = root
        self.config = config(**values)
        self.verifies_transactions = False
        """Whether a transaction must have been verified before its first record is appended."""
        self.services = self._new_services()
        self.files.make_dirs(root)

    def _new_services(self) -> StorageServices:
        return StorageServices.of(
            self.files, self.executor, self.clock, SeededRandomness(1), verifies_transactions=self.verifies_transactions
        )

    def open(self, *, clean: bool = True, recovery_point: int = 0, log_start: int = 0, high_watermark: int = 0) -> Log:
        """Loads the log from its files, as a new process would."""
        self.services = self._new_services()
        folder = f"{self.root}/t-0"
        self.files.make_dirs(folder)
        task = LogTask(
            folder, ("t", 0), self.config, clean, recovery_point, log_start, high_watermark, self.clock.wall_ms()
        )
        loaded = recovery.load(self.files, self.services.open_files, task)
        return Log(self.services, LogDir(self.files, self.root), ("t", 0), self.config, loaded)

    def names(self) -> list[str]:
        return self.files.list(f"{self.root}/t-0")


def manager(files: FileSystem, clock: ManualClock, dirs: Sequence[str] = (ROOT,), **keys: str) -> LogManager:
    names = {name.replace("_", "."): value for name, value in keys.items()}
    return LogManager(files, InlineExecutor(), clock, SeededRandomness(2), BrokerConfig(names), list(dirs))


def batch(values: Sequence[bytes | str], timestamp: int = T0, **options: object) -> bytes:
    """A batch of one record a value, of ascending times."""
    records = [
        Record(i, timestamp + i, b"k", value.encode() if isinstance(value, str) else value, [])
        for i, value in enumerate(values)
    ]
    return build_batch(records, **options)  # type: ignore[arg-type]


def placed(offset: int, values: Sequence[bytes | str], epoch: int = 0, timestamp: int = T0) -> bytes:
    """A batch as a leader sends it to a follower."""
    return offset.to_bytes(8, "big") + batch(values, timestamp, leader_epoch=epoch)[8:]


def idempotent(values: Sequence[str], sequence: int, producer: int = 7, epoch: int = 0, **options: object) -> bytes:
    return batch(values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)


def marker(producer: int = 7, epoch: int = 0, *, commit: bool) -> ValidatedBatch:
    data = build_end_txn_marker(producer, epoch, commit=commit, coordinator_epoch=1, timestamp=T0)
    return ValidatedBatch(read_header(data), (memoryview(data)[16:],))


async def append(log: Log, *values: str, epoch: int = 0, timestamp: int = T0) -> int:
    """Appends one batch; its first offset."""
    return (await log.append_as_leader(batch(values, timestamp), epoch)).first_offset


async def end_transaction(log: Log, producer: int = 7, *, commit: bool, epoch: int = 0) -> None:
    await log.append_as_leader(marker(producer, commit=commit), epoch, origin=Origin.COORDINATOR)


def read_all(log: Log, start: int | None = None, upto: int | None = None) -> list[tuple[int, str]]:
    """(offset, value) of all records, control batches left out, as a consumer gets them."""
    offset = log.log_start_offset if start is None else start
    end = log.log_end_offset if upto is None else upto
    records = []
    while offset < end:
        found = log.read(offset, 1 << 20, upto=upto, min_one=True)
        if found.slice is None:
            break
        for header, data in iter_batches(found.slice.read()):
            if not header.control:
                records += [(r.offset, (r.value or b"").decode()) for r in iter_records(data) if r.offset >= offset]
            offset = max(offset, header.next_offset)
    return records
