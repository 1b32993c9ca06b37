"""What the runtime asks of a coordinator's state machine, and of the codec of its records."""

from __future__ import annotations

from typing import Protocol

from kwire.coordinator.runtime.deadlines import Deadlines
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Producer
from kwire.coordinator.runtime.timeline import Timeline


class StateMachine(Protocol):
    """The state of one partition of an internal topic. No I/O, no clock: the time comes with each call."""

    timeline: Timeline
    deadlines: Deadlines

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        """Takes a record into the state; `producer` is set where it belongs to a transaction that is still open."""

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """That producer's open transaction ends."""

    def loaded(self, now: Now) -> None:
        """The whole log has been replayed: deadlines begin."""

    def unloaded(self, now: Now) -> None:
        """Another broker coordinates from now on: whoever waits is answered NOT_COORDINATOR."""


class RecordCodec(Protocol):
    """Bytes to records and back."""

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        """Key and value."""

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        """None for a kind of record that this version does not know."""
