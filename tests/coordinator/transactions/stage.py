"""A transaction machine without a runtime: each operation's records are replayed, and committed when the test wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.config.broker import BrokerConfig
from kwire.coordinator.records import TopicRecords
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome, Pending, Producer
from kwire.coordinator.transactions.completion import complete
from kwire.coordinator.transactions.effects import MarkersDue, ProducerIdNeeded
from kwire.coordinator.transactions.end_txn import end_txn
from kwire.coordinator.transactions.init_producer_id import init_producer_id
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.coordinator.transactions.partitions import add_partitions
from kwire.coordinator.transactions.records import record_of, transaction_of
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import NO_TIME, Transaction
from kwire.protocol.coordinator_records.record_types import TRANSACTION_RECORD_TYPES
from kwire.protocol.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from kwire.protocol.errors import ErrorCode, KafkaError

TIMEOUT_MS = 60_000
START = Now(1_700_000_000_000, 1_000)


class Noted:
    """Notes what the machine wants done."""

    def __init__(self) -> None:
        self.due: list[MarkersDue] = []
        self.late: list[tuple[str, Producer]] = []

    def markers_due(self, due: MarkersDue) -> None:
        self.due.append(due)

    def timed_out(self, transactional_id: str, producer: Producer) -> None:
        self.late.append((transactional_id, producer))


class Stage:
    """Time stands still unless `pass_time` is called."""

    def __init__(self, version: int = 2, log: list[tuple[bytes, bytes | None]] | None = None, **config: str) -> None:
        self.version = version
        self.now = START
        self.log = log if log is not None else []
        self.noted = Noted()
        self.ids = iter(range(1000, 10**9))
        self._config = BrokerConfig(
            {"log.dirs": "data", **{name.replace("_", "."): value for name, value in config.items()}}
        )
        self._codec = TopicRecords(TRANSACTION_RECORD_TYPES)
        self._waiting: list[tuple[int, Outcome[Any], list[tuple[bytes, bytes | None]]]] = []
        self.commits = True
        self.machine = self._machine()
        self._load()

    def _machine(self) -> TransactionMachine:
        return TransactionMachine(lambda: self._config, lambda: self.version, self.noted)

    def _load(self) -> None:
        for key, value in self.log:
            record = self._codec.decode(key, value)
            assert record is not None
            self.machine.replay(record, None)
        self.machine.loaded(self.now)

    def reload(self, *, committed: bool = True) -> None:
        """Another coordinator takes over: what was not committed is lost.

        Without `committed`, what it reads is not on all in-sync replicas yet.
        """
        self.machine.unloaded(self.now)
        self._waiting.clear()
        self.noted.due.clear()
        self.noted.late.clear()
        self.machine = self._machine()
        if committed:
            self._load()
            return
        number = self.machine.timeline.begin()
        self._load()
        self.machine.timeline.end()
        self._waiting.append((number, Outcome(None), []))

    def do(self, operation: Callable[..., Outcome[Any]], *args: Any, **options: Any) -> Any:
        """The operation's response; raises KafkaError as the runtime does. A producer id is given if it is needed."""
        try:
            outcome = operation(self.machine, self.now, *args, **options)
        except ProducerIdNeeded:
            outcome = operation(self.machine, self.now, *args, new_producer_id=next(self.ids), **options)
        self.submit(outcome)
        response = outcome.response
        if isinstance(response, Pending):
            response = response.result
        if isinstance(response, KafkaError):
            raise response
        return response

    def submit(self, outcome: Outcome[Any]) -> None:
        if not outcome.writes:
            return
        encoded = [self._codec.encode(record) for record in outcome.records]
        number = self.machine.timeline.begin()
        for record, (key, value) in zip(outcome.records, encoded, strict=True):
            decoded = self._codec.decode(key, value)
            assert decoded is not None
            self.machine.replay(decoded, None)
            assert decoded == record or _same(decoded, record)
        self.machine.timeline.end()
        self._waiting.append((number, outcome, encoded))
        if self.commits:
            self.commit()

    def commit(self) -> None:
        """What was written is on all in-sync replicas."""
        waiting, self._waiting = self._waiting, []
        for number, outcome, encoded in waiting:
            self.log += encoded
            self.machine.timeline.commit(number)
            if outcome.committed is not None:
                outcome.committed(self.now)

    def fail(self) -> None:
        """What was written could not be appended."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.machine.timeline.revert(waiting[0][0])

    def pass_time(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.ms + ms)
        while due := list(self.machine.deadlines.pop_due(self.now.ms)):
            for operation in due:
                outcome = operation(self.now)
                if outcome is not None:
                    self.submit(outcome)

    # In few words

    def transaction(self, transactional_id: str = "t") -> Transaction:
        found = self.machine.transactions.get(transactional_id)
        assert found is not None
        return found

    def init(
        self, transactional_id: str = "t", expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Producer:
        return self.do(init_producer_id, transactional_id, timeout_ms, expected)

    def add(
        self, producer: Producer, *partitions: int, transactional_id: str = "t", client_version: int | None = None
    ) -> None:
        version = self.version if client_version is None else client_version
        self.do(
            add_partitions, transactional_id, producer, [("topic", index) for index in partitions], 2 * (version >= 2)
        )

    def end(
        self,
        producer: Producer,
        *,
        commit: bool = True,
        transactional_id: str = "t",
        client_version: int | None = None,
    ) -> Producer:
        version = self.version if client_version is None else client_version
        return self.do(end_txn, transactional_id, producer, 2 * (version >= 2), commit=commit)

    def write_markers(self) -> list[MarkersDue]:
        """Whatever markers are due are written, and the transactions completed."""
        due, self.noted.due = self.noted.due, []
        for each in due:
            self.do(complete, each)
        return due

    def set_epoch(self, epoch: int, transactional_id: str = "t") -> Producer:
        """As if the producer had come so far, and begun no transaction since."""
        found = self.transaction(transactional_id)
        after = found._replace(epoch=epoch, state=TransactionState.EMPTY, start_ms=NO_TIME)
        self.submit(Outcome(None, [record_of(transactional_id, after, self.version)]))
        return after.producer

    def decoded(self, key: bytes, value: bytes | None) -> tuple[str, Transaction | None]:
        """What a record of `log` says of which transactional id; None: it is forgotten."""
        record = self._codec.decode(key, value)
        assert record is not None
        assert isinstance(record.key, TransactionLogKey)
        if record.value is None:
            return record.key.transactional_id, None
        assert isinstance(record.value, TransactionLogValue)
        return record.key.transactional_id, transaction_of(record.value)


def code_of(operation: Callable[..., Any], *args: Any, **options: Any) -> ErrorCode:
    """The error that it raises; NONE if it does not."""
    try:
        operation(*args, **options)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def _same(one: CoordinatorRecord, other: CoordinatorRecord) -> bool:
    return (one.key, one.value) == (other.key, other.value)
