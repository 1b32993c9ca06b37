"""Work on many partitions at intervals, some at once; what fails is done again, after a wait that doubles."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

import trio

from kwire.cluster.tiering.settings import TieringSettings
from kwire.ports.randomness import Randomness
from kwire.protocol.errors import KafkaError
from kwire.remote.errors import RemoteStorageError
from kwire.storage.tiered.remote_segment import TopicIdPartition

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Rounds(Generic[T]):
    """One kind of work."""

    def __init__(
        self,
        what: str,
        find: Callable[[], Iterable[T]],
        work: Callable[[T], Awaitable[None]],
        key: Callable[[T], TopicIdPartition],
        at_once: Callable[[], int],
    ) -> None:
        """`work` is done for all that `find` finds, one at a time for each `key`, for `at_once()` of them together."""
        self._what = what
        self._find = find
        self._work = work
        self._key = key
        self._at_once = at_once
        self._busy: set[TopicIdPartition] = set()
        self._retries: dict[TopicIdPartition, _Retry] = {}
        self._done = trio.Event()

    async def run(self, settings: TieringSettings, randomness: Randomness) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await self._begin_each(nursery, settings, randomness)
                soonest = min(
                    (retry.at for key, retry in self._retries.items() if key not in self._busy), default=float("inf")
                )
                await trio.sleep_until(min(trio.current_time() + settings.task_interval_s, soonest))

    async def _begin_each(self, nursery: trio.Nursery, settings: TieringSettings, randomness: Randomness) -> None:
        """The work on all that is due."""
        found = {self._key(one): one for one in self._find()}
        kept = found.keys() | self._busy
        self._retries = {key: retry for key, retry in self._retries.items() if key in kept}
        for key, one in found.items():
            retry = self._retries.get(key) or _Retry(settings, randomness)
            if key in self._busy or not retry.due:
                continue
            while len(self._busy) >= self._at_once():
                self._done = trio.Event()
                await self._done.wait()
            self._busy.add(key)
            nursery.start_soon(self._do, key, one, retry)

    async def _do(self, key: TopicIdPartition, one: T, retry: _Retry) -> None:
        try:
            await self._work(one)
        except (RemoteStorageError, KafkaError) as error:
            logger.warning("tiered storage: %s of %s failed, tried again later: %s", self._what, key, error)
        except Exception:
            logger.exception("tiered storage: %s of %s failed, tried again later", self._what, key)
        else:
            self._retries.pop(key, None)
            return
        finally:
            self._busy.discard(key)
            self._done.set()
        retry.failed()
        self._retries[key] = retry


class _Retry:
    """When what failed is tried again."""

    def __init__(self, settings: TieringSettings, randomness: Randomness) -> None:
        self._settings = settings
        self._randomness = randomness
        self._wait_s = settings.first_backoff_s
        self.at = float("-inf")
        """By Trio's clock."""

    def failed(self) -> None:
        jitter = 1 + self._settings.backoff_jitter * (self._randomness.below(2001) / 1000 - 1)
        self.at = trio.current_time() + self._wait_s * jitter
        self._wait_s = min(2 * self._wait_s, self._settings.longest_backoff_s)

    @property
    def due(self) -> bool:
        return trio.current_time() >= self.at
