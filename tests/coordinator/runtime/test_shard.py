"""One coordinator partition over a log in memory: writes, failures, commits, loading."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.coordinator import Coordinator, partition_of
from kwire.coordinator.runtime.deadlines import Deadlines
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Marker, Now, Outcome, Pending, Producer
from kwire.coordinator.runtime.shard import Shard
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.ports.clock import TrioClock
from kwire.protocol.errors import ErrorCode, KafkaError
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


async def test_a_write_is_answered_and_read_once_it_is_committed(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    answers: list[str] = []

    async def write() -> None:
        answers.append(await shard.write(put("a", 1)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        assert (answers, shard.read(read("a")), shard.machine.numbers.get("a")) == ([], None, 1)
        log.commit()
    assert (answers, shard.read(read("a"))) == (["a=1"], 1)


async def test_what_is_not_committed_in_time_is_answered_so_and_stays_written(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 1))
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    log.commit()
    assert shard.read(read("a")) == 1


@pytest.mark.parametrize(
    ("from_log", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
    ],
)
async def test_a_failed_append_takes_the_state_back(from_log: ErrorCode, told: ErrorCode) -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    await shard.write(put("a", 1))
    log.failure = KafkaError(from_log)
    failures: list[tuple[ErrorCode, int | None]] = []
    failed = lambda error, now: failures.append((error.code, shard.machine.numbers.get("a")))  # noqa: E731
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 2, failed=failed))
    assert raised.value.code is told
    assert failures == [(told, 1)]  # called when the state is back
    log.failure = None
    assert await shard.write(put("b", 3)) == "b=3"
    assert dict(shard.machine.numbers.items()) == {"a": 1, "b": 3}


async def test_writes_that_come_while_an_append_is_under_way_share_the_next_batch() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(shard.write, put("a", number))
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert [batch.count for batch in log.batches] == [1, 4]
    assert shard.read(read("a")) == 4


async def test_nobody_waits_for_as_long_as_others_write() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    answered: list[int] = []

    async def write(number: int) -> None:
        await shard.write(put("a", number))
        answered.append(number)

    async def let_one_append_through() -> None:
        await trio.testing.wait_all_tasks_blocked()
        gate, log.gate = log.gate, trio.Event()
        assert gate is not None
        gate.set()
        await trio.testing.wait_all_tasks_blocked()

    seen: list[list[int]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, 0)
        for number in range(1, 5):
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(write, number)
            await let_one_append_through()
            seen.append(answered.copy())
        await let_one_append_through()
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert shard.read(read("a")) == 4


async def test_what_takes_too_long_to_be_appended_is_answered_so_and_appended_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(KafkaError) as raised:
            await shard.write(put("a", 2))
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        log.gate.set()
    assert shard.read(read("a")) == 2


async def test_a_transactions_writes_share_a_batch_if_they_share_the_guard() -> None:
    """One that was begun after a marker has a guard of its own, with which the others would not be taken."""
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    guard = VerificationGuard()
    async with trio.open_nursery() as nursery:
        for verification in (None, guard, guard, None):
            write = put("a", 1, producer=Producer(7, 0), verification=verification)
            nursery.start_soon(shard.write, write)
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert [batch.count for batch in log.batches] == [1, 2, 1]
    assert log.guards == [None, guard, None]


async def test_a_batch_is_never_larger_than_the_topic_allows() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(shard.write, put("a" * 50, number))
        await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    assert max(batch.size for batch in log.batches) <= log.max_batch_bytes
    assert sum(batch.count for batch in log.batches) == 100
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a" * 2000, 1))
    assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "a" * 2000 not in shard.machine.numbers


async def test_what_waits_behind_a_failed_append_fails_too() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write(number: int) -> None:
        try:
            await shard.write(put("a", number))
        except KafkaError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(write, number)
        await trio.testing.wait_all_tasks_blocked()
        log.failure = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log.gate.set()
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 3
    assert "a" not in shard.machine.numbers


async def test_who_has_only_seen_what_was_refused_is_to_try_again() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write(operation: Callable[[Numbers, Now], Outcome[str]]) -> None:
        with pytest.raises(KafkaError) as raised:
            await shard.write(operation)
        codes.append(raised.value.code)

    def look(machine: Numbers, now: Now) -> Outcome[str]:
        return Outcome("nothing to write")

    async with trio.open_nursery() as nursery:
        for operation in (put("a", 1, producer=Producer(7, 0)), look, put("a", 2)):
            nursery.start_soon(write, operation)
            await trio.testing.wait_all_tasks_blocked()
        log.failure = KafkaError(ErrorCode.INVALID_TXN_STATE)
        log.gate.set()
    told = {code: codes.count(code) for code in codes}
    assert told == {ErrorCode.INVALID_TXN_STATE: 1, ErrorCode.COORDINATOR_NOT_AVAILABLE: 2}


async def test_a_caller_that_goes_away_undoes_nothing() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shard.write, put("a", 1))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(shard.write, put("a", 2))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        log.gate.set()
    assert shard.read(read("a")) == 2
    assert [batch.count for batch in log.batches] == [1, 1]


async def test_a_pending_response_comes_with_a_later_operation() -> None:
    shard = await shard_of(MemoryLog())
    pending: Pending[str] = Pending()
    answers: list[str] = []

    async def wait() -> None:
        answers.append(await shard.write(lambda machine, now: Outcome(pending)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        await shard.write(put("a", 1, committed=lambda now: pending.answer("joined")))
    assert answers == ["joined"]


async def test_closing_answers_everybody_and_takes_back_what_was_not_committed() -> None:
    log = MemoryLog()
    log.commits = False
    shard = await shard_of(log)
    codes: list[ErrorCode] = []

    async def write() -> None:
        try:
            await shard.write(put("a", 1))
        except KafkaError as error:
            codes.append(error.code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        log.gate = trio.Event()
        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        shard.close()
        log.gate.set()
    assert codes == [ErrorCode.NOT_COORDINATOR] * 2
    assert "a" not in shard.machine.numbers
    assert shard.machine.events == ["loaded", "unloaded"]
    with pytest.raises(KafkaError) as raised:
        shard.read(read("a"))
    assert raised.value.code is ErrorCode.NOT_COORDINATOR


async def test_loading_replays_records_tombstones_and_transactions() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    one, two = Producer(7, 0), Producer(8, 0)
    await shard.write(put("a", 1))
    await shard.write(put("gone", 1))
    await shard.write(put("gone", None))
    await shard.write(put("b", 2, producer=one))
    await shard.write(put("c", 3, producer=two))
    await shard.write(lambda machine, now: Outcome(None, marker=Marker(one, True, 5, 2)))
    await shard.write(lambda machine, now: Outcome(None, marker=Marker(two, False, 5, 0)))
    await shard.write(put("d", 4, producer=one))
    assert [(batch.control, batch.transactional, batch.producer_id) for batch in log.batches[3:]] == [
        (False, True, 7),
        (False, True, 8),
        (True, True, 7),
        (True, True, 8),
        (False, True, 7),
    ]
    assert log.versions[5:] == [2, 0, 0]
    again = await shard_of(MemoryLog(log.data))
    for machine in (shard.machine, again.machine):
        assert dict(machine.numbers.items()) == {"a": 1, "b": 2}
        assert dict(machine.open.items()) == {one: (("d", 4),)}


async def test_what_is_loaded_from_behind_the_high_watermark_is_committed_later() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    await shard.write(put("a", 1))
    await shard.write(put("a", 2))
    again = MemoryLog(log.data)
    again.committed = 1
    shard = await shard_of(again)
    assert (shard.machine.numbers.get("a"), shard.read(read("a"))) == (2, 1)
    again.commit()
    assert shard.read(read("a")) == 2


async def test_what_was_deleted_is_not_loaded() -> None:
    log = MemoryLog()
    log.gate = trio.Event()
    shard = await shard_of(log)
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(shard.write, put(name, 1))
            await trio.testing.wait_all_tasks_blocked()
        log.gate.set()
    again = MemoryLog(log.data)
    again.start = 2  # in the middle of the second batch
    assert dict((await shard_of(again)).machine.numbers.items()) == {"c": 1}


async def test_while_loading_nobody_is_served() -> None:
    shard = Shard(MemoryLog(), Numbers(), Codec(), TrioClock())
    with pytest.raises(KafkaError) as raised:
        await shard.write(put("a", 1))
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_an_operation_whose_records_the_machine_cannot_take_changes_nothing() -> None:
    log = MemoryLog()
    shard = await shard_of(log)
    with pytest.raises(ValueError, match="can't take"):
        await shard.write(
            lambda machine, now: Outcome(None, [CoordinatorRecord("a", 1), CoordinatorRecord("bad", 1)])  # type: ignore[arg-type]
        )
    assert "a" not in shard.machine.numbers
    assert log.batches == []


async def test_deadlines_run_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    log = MemoryLog()
    clock = TrioClock()
    coordinator = Coordinator("numbers", lambda index, log: Shard(log, Numbers(), Codec(), clock))
    coordinator.partitions = 1
    coordinator.lead(0, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.run)
        await trio.testing.wait_all_tasks_blocked()
        shard = coordinator.shard_of("any")

        def later(now: Now) -> Outcome[None]:
            return Outcome(None, [CoordinatorRecord("late", now.ms)])  # type: ignore[arg-type]

        start = shard.now().ms
        for at in (5000, 2000, 9000):
            shard.machine.deadlines.schedule(at, start + at, later)
        await trio.sleep(2.001)
        assert shard.read(read("late")) == start + 2000
        shard.machine.deadlines.schedule("sooner", start + 3000, later)
        await trio.sleep(1)
        assert shard.read(read("late")) == start + 3000
        await trio.sleep(7)
        assert shard.read(read("late")) == start + 9000
        coordinator.close()
        with pytest.raises(KafkaError) as raised:
            coordinator.shard_of("any")
        assert raised.value.code is ErrorCode.NOT_COORDINATOR
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("", 0),
        ("a", 47),
        ("polygenelubricants", 0),  # its hash is the least int, which has no absolute value
        ("gruppe-ü", 22),
        ("𝄞", 44),
        ("my-group", 12),  # its hash is negative
    ],
)
def test_keys_are_spread_as_by_apache_kafka(key: str, partition: int) -> None:
    assert partition_of(key, 50) == partition
