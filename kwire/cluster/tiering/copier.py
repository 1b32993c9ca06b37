"""Copying a partition's finished segments to remote storage, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.cluster.tiering.metadata import RemoteLogMetadata
from kwire.cluster.tiering.reads import identity
from kwire.cluster.tiering.remover import Remover
from kwire.ports.clock import Clock
from kwire.protocol.errors import KafkaError
from kwire.remote.errors import RemoteStorageError
from kwire.remote.object_store import ObjectStore
from kwire.storage.segment import Segment
from kwire.storage.throttle import Throttle
from kwire.storage.tiered.remote_segment import SegmentState, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments
from kwire.storage.tiered.uploading import CopyAborted, candidate, copied_end, describe, upload

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log

logger = logging.getLogger(__name__)


class Copier:
    """Copies the segments of the partitions that this broker leads."""

    def __init__(
        self,
        metadata: RemoteLogMetadata,
        store: ObjectStore,
        remover: Remover,
        throttle: Throttle,
        clock: Clock,
        broker_id: int,
        new_id: Callable[[], bytes],
    ) -> None:
        self._metadata = metadata
        self._store = store
        self._remover = remover
        self._throttle = throttle
        self._clock = clock
        self._broker_id = broker_id
        self._new_id = new_id
        self._known: dict[TopicIdPartition, tuple[Log, int]] = {}
        """The log and the leader epoch for which it was looked up what is in remote storage."""
        self.under_way: set[bytes] = set()
        """Ids of the copies that are being made."""
        self.copying: set[TopicIdPartition] = set()
        """The partitions that are being copied."""
        self.emptying: set[TopicIdPartition] = set()
        """The partitions of which all copies are being removed: until that is done none counts, and none is made."""

    def adopt(self, partition: Partition) -> RemoteSegments | None:
        """What lies in remote storage of a partition that this broker leads; None while that is not known.

        The first time in a leader epoch the log learns it too: up to where it was copied, and where it begins.
        """
        of, log = identity(partition), partition.log
        segments = self._metadata.segments(of)
        if segments is None or log is None or not partition.is_leader or of in self.emptying:
            return None
        if self._known.get(of) != (log, partition.leader_epoch):
            log.epochs.begin_with(segments.history_before(log.epochs.entries(), log.log_start_offset))
            epochs = log.epochs.entries()
            log.tiered_end_offset = copied_end(log, segments)
            first = next(segments.readable(epochs, log.log_start_offset), None)
            start = log.local_start_offset
            if first is not None:
                start = min(start, first.start_offset)
            if start > log.log_start_offset and not self._metadata.mentions(of):
                # A log that begins before its first segment here was copied: the records that told of it are lost, or
                # in a log dir that is not there. The copies must not be taken for what the log has left behind.
                logger.error(
                    "%s begins at %d, here are the offsets from %d on, and the remote log metadata tell nothing of "
                    "what is between",
                    of,
                    log.log_start_offset,
                    log.local_start_offset,
                )
            elif start > log.log_start_offset:
                log.advance_log_start(min(start, log.high_watermark))
            self._known[of] = log, partition.leader_epoch
        return segments

    def forget(self, of: TopicIdPartition) -> None:
        """The partition is deleted."""
        self._known.pop(of, None)

    async def copy(self, partition: Partition) -> None:
        """Copies what can be copied. Ends early where this broker leads no more, or the log is another one.

        Raises RemoteStorageError, KafkaError.
        """
        of, log, leader_epoch = identity(partition), partition.log, partition.leader_epoch
        self.copying.add(of)
        try:
            while log is not None and log.tiered and not log.config.remote_log_copy_disable:
                segments = self.adopt(partition)
                if segments is None or partition.log is not log or partition.leader_epoch != leader_epoch:
                    return
                log.tiered_end_offset = copied_end(log, segments, log.tiered_end_offset)
                found = candidate(log, max(log.tiered_end_offset, log.log_start_offset))
                if found is None:
                    return
                segment, next_offset = found
                await self._throttle(segment.size)
                if candidate(log, max(log.tiered_end_offset, log.log_start_offset)) != found:
                    continue  # the log was changed meanwhile
                await self._copy(of, log, segment, next_offset)
        except CopyAborted:
            logger.info("a copy of %s to remote storage was given up, since the log was changed meanwhile", of)
        finally:
            self.copying.discard(of)

    async def _copy(self, of: TopicIdPartition, log: Log, segment: Segment, next_offset: int) -> None:
        version = log.version
        copy = await describe(log, segment, next_offset, self._new_id(), self._broker_id, self._clock.wall_ms())
        self.under_way.add(copy.id)
        try:
            await self._metadata.begin_copy(of, copy)
            try:
                await upload(log, version, segment, copy, of, self._store)
            except (RemoteStorageError, CopyAborted) as error:
                logger.info("cleaning up after a copy of %s to remote storage that failed: %s", of, error)
                try:
                    await self._remover.remove(of, copy)
                except (RemoteStorageError, KafkaError) as another:
                    logger.info("cleaning up after it is tried again later: %s", another)
                raise
            await self._metadata.update(of, copy.id, SegmentState.COPY_SEGMENT_FINISHED)
        finally:
            self.under_way.discard(copy.id)
        log.tiered_end_offset = max(log.tiered_end_offset, next_offset)
        logger.info("copied offsets %d to %d of %s to remote storage", copy.start_offset, copy.end_offset, of)
