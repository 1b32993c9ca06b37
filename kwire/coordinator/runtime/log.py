"""What the runtime needs of the log of an internal topic's partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kwire.ports.files import Buffer
from kwire.storage.verification import VerificationGuard


class CoordinatorLog(Protocol):
    """The log of a partition that this broker leads, in one leader epoch."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def start(self) -> int:
        """The first offset there is."""

    @property
    def end(self) -> int:
        """The log end offset (exclusive)."""

    @property
    def committed(self) -> int:
        """The high watermark (exclusive)."""

    @property
    def max_batch_bytes(self) -> int:
        """The topic's `max.message.bytes`."""

    async def append(
        self, batch: bytes, *, transaction_version: int = 0, verification: VerificationGuard | None = None
    ) -> int:
        """Appends one record batch (base offset 0) and returns the log's end behind it. Raises KafkaError.

        `transaction_version`: that under which a marker is written; `verification`: with what the log takes the first
        batch of a producer's transaction (KIP-890).
        """

    async def read(self, offset: int, max_bytes: int) -> Buffer:
        """Whole batches from the one with `offset` on, at least one where there is one. Raises KafkaError."""

    def on_progress(self, call: Callable[[], None]) -> None:
        """`call` is called whenever `committed` may have moved, until `close`."""

    def close(self) -> None:
        """No more calls."""
