"""Waiting for a partition: whoever waits is woken by what he waits for, and nobody looks at a clock meanwhile.

A waiter is put on each partition it cares for (`partition.watch`) and called back, at once and synchronously, whenever
one of them changes: its end offset, high watermark, last stable offset, log start offset, or its role. It decides for
itself whether that was what it waited for. `ReplicationWait` is the one for produce requests with acks=all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from kwire.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kwire.cluster.partition import Appended, Partition


class Waiter(Protocol):
    def wake(self, partition: Partition) -> None:
        """The partition changed. Must not raise, must not wait; may watch and unwatch."""


class ReplicationWait:
    """Waits until appends are on all in-sync replicas.

        wait = ReplicationWait([(partition, appended), …])
        codes = await wait.finish(timeout_s)              # one error code for each append, in the same order

    An append ends with NONE, NOT_ENOUGH_REPLICAS_AFTER_APPEND (committed, but by fewer than `min.insync.replicas`),
    NOT_LEADER_OR_FOLLOWER (leadership was lost before it was committed), UNKNOWN_TOPIC_OR_PARTITION (the topic is
    deleted), KAFKA_STORAGE_ERROR or REQUEST_TIMED_OUT.
    """

    __slots__ = ("_done", "_open", "outcomes")

    def __init__(self, appends: Sequence[tuple[Partition, Appended]]) -> None:
        self.outcomes: list[ErrorCode | None] = []
        """What is known so far; None where the append still waits."""
        self._open: dict[Partition, list[tuple[int, Appended]]] = {}
        self._done: trio.Event | None = None
        for number, (partition, appended) in enumerate(appends):
            outcome = partition.acknowledged(appended)
            self.outcomes.append(outcome)
            if outcome is None:
                self._open.setdefault(partition, []).append((number, appended))
        for partition in self._open:
            partition.watch(self)

    @property
    def settled(self) -> bool:
        """Whether every outcome is known: `finish` will return at once."""
        return not self._open

    def wake(self, partition: Partition) -> None:
        waiting = []
        for number, appended in self._open.get(partition, ()):
            outcome = partition.acknowledged(appended)
            self.outcomes[number] = outcome
            if outcome is None:
                waiting.append((number, appended))
        if waiting:
            self._open[partition] = waiting
        elif self._open.pop(partition, None) is not None:
            partition.unwatch(self)
            if not self._open and self._done is not None:
                self._done.set()

    async def finish(self, timeout_s: float) -> list[ErrorCode]:
        """Waits at most `timeout_s` seconds; may be called once."""
        if self._open:
            self._done = trio.Event()
            try:
                with trio.move_on_after(timeout_s):
                    await self._done.wait()
            finally:
                self.give_up()
        return [ErrorCode.REQUEST_TIMED_OUT if outcome is None else outcome for outcome in self.outcomes]

    def give_up(self) -> None:
        """Ends the wait: what is still open ends with REQUEST_TIMED_OUT. A `finish` under way returns."""
        for partition in self._open:
            partition.unwatch(self)
        self._open.clear()
        if self._done is not None:
            self._done.set()
