"""Appending the batches of a Produce request that is known from an earlier one, in turns.

Who appends says what was done by then; what is stuck is his to hand to the handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kwire.broker.appendable import appendable
from kwire.ports.turns import Turn
from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log
    from kwire.storage.validated import ValidatedBatch

_LOOK_BYTES: Final = 256 * 1024
"""After so many of batches it is looked whether the turn is over,"""

_BATCH_BYTES: Final = 16 * 1024
"""where each batch counts as so many besides its own: a default one of as many takes some 40 µs, 10 of them for its
bytes, and up to 100 more where its records are looked at."""


class Appends:
    """Appending one batch after the other."""

    __slots__ = (
        "_acks",
        "_between",
        "_broker",
        "_topic_id",
        "_transactional",
        "_version",
        "asked",
        "done",
        "name",
        "refusals",
        "stuck",
        "values",
    )

    def __init__(
        self,
        broker: Broker,
        name: str,
        topic_id: bytes | None,
        asked: list[tuple[int, memoryview]],
        acks: int,
        version: int,
        transactional_id: str | None,
        between: bytes,
    ) -> None:
        """`topic_id`: as of `appendable`. `between`: as `Answer.between`."""
        self._broker = broker
        self._acks = acks
        self._version = version
        self._topic_id = topic_id
        self._transactional = transactional_id is not None
        self._between = between
        self.name = name
        """Of their topic."""
        self.asked = asked
        self.done = 0
        """How many of them."""
        self.stuck = False
        """Whether the next one can't be appended at once."""
        self.values: list[Any] = []
        """Those that the answer takes of each partition."""
        self.refusals: dict[int, KafkaError] = {}
        """By partition; only what can't be the first of a request, which is the handler's to refuse."""

    def go_on(self) -> None:
        """Until the turn is over, or one is stuck, or all are done."""
        turn = Turn(self._broker.clock)
        while not self.stuck and self.done < len(self.asked):
            self._append(self._checked())
            if turn.over:
                break

    def _checked(self) -> list[tuple[int, Partition, Log, ValidatedBatch]]:
        """The next batches, as many as are appended without a look at the time, up to one that can't be.

        All are looked at before any is appended: what goes through less code at a time finds it in the processor's
        caches.
        """
        broker, name, topic_id, acks = self._broker, self.name, self._topic_id, self._acks
        version, transactional, now_ms = self._version, self._transactional, broker.clock.wall_ms()
        good, size = [], 0
        for at in range(self.done, len(self.asked)):
            index, records = self.asked[at]
            found = appendable(
                broker, name, topic_id, index, records, acks, version, transactional, now_ms, unpacks=False
            )
            if found is None:
                self.stuck = True
                break
            good.append((index, *found))
            size += _BATCH_BYTES + len(records)
            if size >= _LOOK_BYTES:
                break
        return good

    def _append(self, good: list[tuple[int, Partition, Log, ValidatedBatch]]) -> None:
        values, between = self.values, self._between
        for index, partition, log, batch in good:
            try:
                info = partition.append_at_once(batch, log)
            except KafkaError as error:
                if not self.done:
                    self.stuck = True
                    return
                self.refusals[index] = error.with_traceback(None)  # which would keep this call, and all its records
                values += (index, 0, -1, -1, log.log_start_offset, between)
            else:
                values += (index, 0, info.first_offset, info.log_append_time, info.log_start_offset, between)
            self.done += 1
