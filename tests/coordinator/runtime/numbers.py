"""What the runtime is tested with: a machine that keeps numbers, its codec, and a log in memory."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import trio

from kwire.coordinator.runtime.deadlines import Deadlines
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome, Producer
from kwire.coordinator.runtime.shard import Shard
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.ports.clock import TrioClock
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import BatchHeader, iter_batches, read_header, write_prefix
from kwire.storage.verification import VerificationGuard

NUMBER = Struct(">i")


class MemoryLog:
    """A log that appends when it is let, and commits when it is told."""

    leader_epoch = 0
    start = 0
    max_batch_bytes = 1000

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.end = self.committed = sum(header.count for header, _ in iter_batches(data))
        self.commits = True
        self.failure: KafkaError | None = None
        self.gate: trio.Event | None = None
        self.batches: list[BatchHeader] = []
        self.guards: list[VerificationGuard | None] = []
        self.versions: list[int] = []
        self.progressed: Callable[[], None] = lambda: None

    async def append(
        self, batch: bytes, *, transaction_version: int = 0, verification: VerificationGuard | None = None
    ) -> int:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        header = read_header(batch)
        self.batches.append(header)
        self.guards.append(verification)
        self.versions.append(transaction_version)
        self.data += write_prefix(self.end, header.batch_length, 0) + batch[16:]
        self.end += header.count
        if self.commits:
            self.committed = self.end
        return self.end

    async def read(self, offset: int, max_bytes: int) -> bytes:
        return b"".join(bytes(batch) for header, batch in iter_batches(self.data) if header.next_offset > offset)

    def commit(self) -> None:
        self.committed = self.end
        self.progressed()

    def on_progress(self, call: Callable[[], None]) -> None:
        self.progressed = call

    def close(self) -> None:
        self.progressed = lambda: None


class Codec:
    """Keys are texts, values numbers: no messages, as the runtime does not look into them."""

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        value = record.value
        return record.key.encode(), None if value is None else NUMBER.pack(value)  # type: ignore[attr-defined,arg-type]

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        if key == b"unknown":
            return None
        return CoordinatorRecord(key.decode(), None if value is None else NUMBER.unpack(value)[0])  # type: ignore[arg-type]


class Numbers:
    """A machine that keeps a number by name; those of open transactions apart."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.deadlines = Deadlines()
        self.numbers: TimelineDict[str, int] = TimelineDict(self.timeline)
        self.open: TimelineDict[Producer, tuple[tuple[str, int], ...]] = TimelineDict(self.timeline)
        self.events: list[str] = []

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        key, value = str(record.key), record.value
        if key == "bad":
            raise ValueError("a record that the machine can't take")
        if producer is not None:
            self.open[producer] = (*(self.open.get(producer) or ()), (key, value))  # type: ignore[arg-type]
        elif value is None:
            self.numbers.pop(key)
        else:
            self.numbers[key] = value  # type: ignore[assignment]

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        for key, value in self.open.pop(producer) or ():
            if commit:
                self.numbers[key] = value

    def loaded(self, now: Now) -> None:
        self.events.append("loaded")

    def unloaded(self, now: Now) -> None:
        self.events.append("unloaded")


def put(name: str, value: int | None, **more: object) -> Callable[[Numbers, Now], Outcome[str]]:
    record = CoordinatorRecord(name, value)  # type: ignore[arg-type]
    return lambda machine, now: Outcome(f"{name}={value}", [record], **more)  # type: ignore[arg-type]


def read(name: str) -> Callable[[Numbers, Now], int | None]:
    return lambda machine, now: machine.numbers.committed(name)


async def shard_of(log: MemoryLog) -> Shard[Numbers]:
    shard = Shard(log, Numbers(), Codec(), TrioClock())
    await shard.load()
    return shard
