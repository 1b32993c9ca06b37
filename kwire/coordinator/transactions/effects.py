"""What a transaction machine wants done that is not its own state: the machine says so and goes on."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.transaction import Transaction


class MarkersDue(NamedTuple):
    """A transaction whose end is decided.

    Once that is committed, which it may not be yet where a coordinator has just come, markers with its producer id and
    epoch are to be written to all its partitions, and when they are, `complete` (`completion.py`) is to be called. They
    may be asked for again, of the next coordinator.
    """

    transactional_id: str
    transaction: Transaction


class ProducerIdNeeded(Exception):
    """An operation needs a new producer id: it has changed nothing, and is to be called again with one."""


class Effects(Protocol):
    """Called by the machine; must neither wait nor raise."""

    def markers_due(self, due: MarkersDue) -> None:
        """Markers are to be written."""

    def timed_out(self, transactional_id: str, producer: Producer) -> None:
        """That transaction is open for too long: `abort` (`timeouts.py`) is to be called."""
