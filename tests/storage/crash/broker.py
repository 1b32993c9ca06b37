"""The storage of a broker on a simulated disk: it lives, dies at a system call, and lives again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.ports.executor import InlineExecutor
from kwire.ports.randomness import SeededRandomness
from kwire.ports.simulated_disk import Call, Effect, Killed, Order, SimulatedDisk, fail_at, kill_at
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.cleaning.log_cleaner import LogCleaner
from kwire.storage.log import Log
from kwire.storage.manager import LogManager
from kwire.storage.upkeep import Upkeep

from ..support import CLUSTER, ROOT, ManualClock

KEYS = {
    "transaction.partition.verification.enable": "false",
    "producer.id.expiration.ms": str(2**31 - 1),  # nobody is to be forgotten
}


class Broker:
    """One log dir and its manager. Everything runs at once and in order."""

    def __init__(self, order: Order, seed: int, topics: dict[str, LogConfig]) -> None:
        self.clock = ManualClock()
        self.disk = SimulatedDisk(self.clock, order=order, seed=seed)
        self.topics = topics
        self.manager: LogManager
        self.upkeep: Upkeep
        self.cleaner: LogCleaner
        self.power_cut = False
        """Whether the last life, or an attempt to begin this one, ended with one."""

    def log(self, topic: str) -> Log:
        return self.manager.logs[topic, 0]

    def do(self, work: Callable[[], Awaitable[object]], *, kill: int | None = None, share: float = 0.0) -> bool:
        """Does something; with `kill` the process ends at its so-manieth change. Whether it came to its end."""
        if kill is not None:
            self.disk.fault = kill_at(self.disk.calls + kill, share)
        try:
            trio.run(work)
        except BaseException:
            if not self.disk.ended:
                raise
            return False
        finally:
            self.disk.fault = None
        return True

    def fails(
        self, work: Callable[[], Awaitable[object]], *, call: int, error: int, share: float
    ) -> tuple[bool, str | None]:
        """Does something whose so-manieth change of the disk fails.

        Whether that took the log dir offline, and which operation it was that failed.
        """
        failed: str | None = None
        failing = fail_at(self.disk.calls + call, error, share)

        def fault(asked: Call) -> Effect | None:
            nonlocal failed
            effect = failing(asked)
            if effect is not None:
                failed = asked.operation
            return effect

        self.disk.fault = fault
        try:
            trio.run(work)
        except KafkaError as refusal:
            if refusal.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                raise
        finally:
            self.disk.fault = None
        return not self.manager.online_dirs, failed

    def start(self, *, power_cut: bool = False, kills: tuple[tuple[int, bool], ...] = ()) -> None:
        """Another life. Each of `kills` ends one start at a change, and says whether the power goes with it."""
        self.power_cut = power_cut
        self._next_life(power_cut)
        for kill, with_power in kills:
            if self.do(self._start, kill=kill):
                self.disk.fault = kill_at(0)  # it had started: it ends right after that
                self.do(self._nothing)
            self.power_cut = self.power_cut or with_power
            self._next_life(with_power)
        assert self.do(self._start)

    def _next_life(self, power_cut: bool) -> None:
        if power_cut:
            self.disk.cut_power()
        else:
            self.disk.restart()

    async def _nothing(self) -> None:
        self.disk.make_dirs(f"{ROOT}/never")

    async def _start(self) -> None:
        self.manager = LogManager(
            self.disk, InlineExecutor(), self.clock, SeededRandomness(self.disk.moment), BrokerConfig(KEYS), [ROOT]
        )
        self.upkeep = Upkeep(self.manager)
        self.cleaner = LogCleaner(self.manager)
        await self.manager.lock()
        await self.manager.load(CLUSTER, 1, lambda topic: self.topics[topic])

    async def stop(self) -> None:
        await self.manager.close(1)
        self.manager.unlock()


__all__ = ["Broker", "Killed"]
