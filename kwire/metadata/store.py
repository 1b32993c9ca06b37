"""Where metadata comes from and goes to: the protocol class every store follows, and the delivery they share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import trio

from kwire.metadata.changes import Change
from kwire.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

Subscriber = Callable[[MetadataImage, MetadataImage], Awaitable[None]]
"""Called with the image before and after; several commits may come as one step. It must not await a commit itself."""


class VersionConflict(Exception):
    """A conditional commit came too late: the image is not (or no longer) of the version it was made for."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"the metadata is at version {actual}, not {expected}")
        self.expected = expected
        self.actual = actual


class MetadataStore(Protocol):
    """Yields images and accepts changes. One per broker, even where several share what is behind it."""

    @property
    def image(self) -> MetadataImage:
        """The newest image whose subscribers have all returned: what it shows is usable."""

    async def commit(self, changes: Sequence[Change], *, expected_version: int | None = None) -> MetadataImage:
        """Makes the changes durable, all or none, and tells the subscribers; returns the image they made.

        Raises VersionConflict where `expected_version` is given and is not the current version, InvalidChange where a
        change does not fit, KafkaError(KAFKA_STORAGE_ERROR) where it cannot be made durable: then nothing changed.
        A commit that was begun is finished even where the caller is cancelled. No changes: the current image.
        """

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        """Calls back on each change from now on, in order; returns what ends it."""

    async def close(self) -> None:
        """Commits no more; a store on disk notes that it stopped in order."""


class Publisher:
    """The subscribers of one store: called one after the other, each step before the next.

    A subscriber that raises is logged and the others go on: what is committed cannot be taken back.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._subscribers: list[Subscriber] = []
        self._delivering: trio.lowlevel.Task | None = None

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self._subscribers = [*self._subscribers, callback]

        def unsubscribe() -> None:
            self._subscribers = [other for other in self._subscribers if other is not callback]

        return unsubscribe

    def refuse_reentry(self) -> None:
        """Raises RuntimeError where a subscriber commits and waits for it, which would wait for itself."""
        if self._delivering is trio.lowlevel.current_task():
            raise RuntimeError("a metadata subscriber must not await a commit; start a task for it")

    async def publish(self, image: MetadataImage) -> None:
        """Tells the subscribers and then shows `image`. The caller sees to it that only one publish runs at a time."""
        before = self.image
        self._delivering = trio.lowlevel.current_task()
        try:
            for callback in self._subscribers:
                try:
                    await callback(before, image)
                except Exception:
                    logger.exception("a metadata subscriber failed on version %d", image.version)
        finally:
            self._delivering = None
            self.image = image
