"""Deleting copies: announced, done, and told that it is done."""

from __future__ import annotations

from kwire.cluster.tiering.metadata import RemoteLogMetadata
from kwire.remote.object_store import ObjectStore
from kwire.storage import layout
from kwire.storage.tiered.chunks import ChunkCache
from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState, TopicIdPartition


class Remover:
    """Deletes from one store."""

    def __init__(self, metadata: RemoteLogMetadata, store: ObjectStore, chunks: ChunkCache) -> None:
        self._metadata = metadata
        self._store = store
        self._chunks = chunks

    async def remove(self, of: TopicIdPartition, segment: RemoteSegment) -> None:
        """Deletes one copy, finished or not. What fails on the way is done again by who asks again.

        Raises RemoteStorageError, and KafkaError where a record cannot be written.
        """
        await self._metadata.update(of, segment.id, SegmentState.DELETE_SEGMENT_STARTED)
        await self._store.delete(segment.keys(of))
        self._chunks.forget(segment.key(of, layout.LOG))
        await self._metadata.update(of, segment.id, SegmentState.DELETE_SEGMENT_FINISHED)
