"""A group machine without a runtime: operations are run, their records replayed and committed at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kwire.config.broker import BrokerConfig
from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.machine import GroupMachine
from kwire.coordinator.records import TopicRecords
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome, Pending, Producer
from kwire.metadata.image import MetadataImage
from kwire.ports.randomness import SeededRandomness
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES
from kwire.protocol.errors import KafkaError

T = TypeVar("T")

EPOCH_MS = 1_700_000_000_000


class Desk:
    """The machine, the time, and what has been written."""

    def __init__(self, settings: Mapping[str, str] | None = None, log: list[tuple[bytes, bytes | None]] | None = None):
        """`log`: what another desk has written, which is replayed."""
        self.config = BrokerConfig({"log.dirs": "data", **(settings or {})})
        self.image = MetadataImage()
        self.machine = GroupMachine(lambda: self.config, lambda: self.image, SeededRandomness(1))
        self.ms = 1_000_000
        self.set_ms = 0
        """How far the time of day was set, forward or back."""
        self.codec = TopicRecords(GROUP_RECORD_TYPES)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.failure: KafkaError | None = None
        """What the next append fails with."""
        for key, value in log or ():
            record = self.codec.decode(key, value)
            assert record is not None
            self.log.append((key, value))
            self.machine.replay(record, None)
        self.machine.loaded(self.now)

    @property
    def now(self) -> Now:
        return Now(EPOCH_MS + self.ms + self.set_ms, self.ms)

    def run(self, operation: Callable[[GroupMachine, Now], Outcome[T]]) -> Any:
        """The response, or what is pending; a KafkaError is raised."""
        return self._finish(operation(self.machine, self.now))

    def _finish(self, outcome: Outcome[T]) -> T | Pending[T]:
        if outcome.writes:
            encoded = [self.codec.encode(record) for record in outcome.records]
            number = self.machine.timeline.begin()
            if outcome.replay:
                for record in outcome.records:
                    self.machine.replay(record, outcome.producer)
            self.machine.timeline.end()
            if self.failure is not None:
                error, self.failure = self.failure, None
                self.machine.timeline.revert(number)
                if outcome.failed is not None:
                    outcome.failed(error, self.now)
                raise error
            self.machine.timeline.commit(number)
            self.log += encoded
            if outcome.committed is not None:
                outcome.committed(self.now)
        return outcome.response

    def end_transaction(self, producer: Producer, *, commit: bool) -> None:
        self.machine.replay_marker(producer, commit=commit)

    def pass_time(self, ms: int) -> None:
        """Lets time go by; what falls due is run when it does. Raises the first KafkaError of that, at the end."""
        until = self.ms + ms
        failed: KafkaError | None = None
        while (at := self.machine.deadlines.next_ms()) is not None and at <= until:
            self.ms = max(self.ms, at)
            for due in self.machine.deadlines.pop_due(self.ms):
                outcome = due(self.now)
                if outcome is not None:
                    try:
                        self._finish(outcome)
                    except KafkaError as error:
                        failed = failed or error
        self.ms = until
        if failed is not None:
            raise failed

    def settle(self) -> None:
        """Runs what is due now."""
        self.pass_time(0)

    def reloaded(self, settings: Mapping[str, str] | None = None) -> Desk:
        """Another coordinator that reads what this one has written, and gives ids that this one has not."""
        desk = Desk(settings, self.log)
        desk.machine.randomness = self.machine.randomness
        return desk

    def last_record(self) -> CoordinatorRecord:
        record = self.codec.decode(*self.log[-1])
        assert record is not None
        return record


def client(name: str = "client", version: int = 9) -> Caller:
    return Caller(name, "/127.0.0.1", version)
