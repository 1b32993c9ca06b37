"""Metadata in memory, shared by the brokers of one process: for tests and simulation.

    metadata = MemoryMetadata("cluster-id")
    store_1, store_2 = metadata.attach(), metadata.attach()      # one a broker

A commit through one store reaches all of them before it returns, except those that are paused (a broker that is cut
off): a paused store keeps its image and, when resumed, comes to the newest in one step. Its own commits wait till then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from kwire.metadata.changes import Change, apply
from kwire.metadata.image import MetadataImage
from kwire.metadata.store import Publisher, Subscriber, VersionConflict
from kwire.protocol.errors import ErrorCode, KafkaError


class MemoryMetadata:
    """The agreed image behind any number of stores."""

    def __init__(self, cluster_id: str = "kwire-in-memory-000000", image: MetadataImage | None = None) -> None:
        self.committed = image or MetadataImage(cluster_id=cluster_id)
        self.fail_next: OSError | None = None
        """A fault to inject: the next commit fails with KAFKA_STORAGE_ERROR."""
        self._stores: list[MemoryMetadataStore] = []
        self._lock = trio.Lock()

    def attach(self) -> MemoryMetadataStore:
        """A store for one more broker, at the newest image."""
        store = MemoryMetadataStore(self)
        self._stores.append(store)
        return store

    def detach(self, store: MemoryMetadataStore) -> None:
        self._stores = [other for other in self._stores if other is not store]

    async def commit(self, changes: Sequence[Change], expected_version: int | None) -> MetadataImage:
        for store in self._stores:
            store.publisher.refuse_reentry()
        async with self._lock:
            if expected_version is not None and expected_version != self.committed.version:
                raise VersionConflict(expected_version, self.committed.version)
            if not changes:
                return self.committed
            image = apply(self.committed, changes)
            if self.fail_next is not None:
                failure, self.fail_next = self.fail_next, None
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)) from failure
            self.committed = image
            with trio.CancelScope(shield=True):
                await self._deliver()
        return image

    async def deliver(self) -> None:
        """Brings every store that is not paused to the newest image."""
        async with self._lock:
            with trio.CancelScope(shield=True):
                await self._deliver()

    async def _deliver(self) -> None:
        for store in self._stores:
            if not store.paused and store.image is not self.committed:
                await store.publisher.publish(self.committed)


class MemoryMetadataStore:
    """One broker's view of a MemoryMetadata: a MetadataStore."""

    def __init__(self, metadata: MemoryMetadata) -> None:
        self.publisher = Publisher(metadata.committed)
        self._resumed = trio.Event()
        self._resumed.set()
        self._metadata = metadata
        self._closed = False

    @property
    def image(self) -> MetadataImage:
        return self.publisher.image

    async def commit(self, changes: Sequence[Change], *, expected_version: int | None = None) -> MetadataImage:
        if self._closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the metadata store is closed")
        await self._resumed.wait()
        return await self._metadata.commit(changes, expected_version)

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        return self.publisher.subscribe(callback)

    @property
    def paused(self) -> bool:
        return not self._resumed.is_set()

    def pause(self) -> None:
        """Cuts this broker off: it sees no changes and can make none."""
        self._resumed = trio.Event()

    async def resume(self) -> None:
        """Lets changes through again; returns when this store has the newest image."""
        self._resumed.set()
        await self._metadata.deliver()

    async def close(self) -> None:
        self._closed = True
        self._metadata.detach(self)
