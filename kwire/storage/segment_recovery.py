"""Going through one segment batch by batch: what follows from its batches is built anew, what is none is cut off.

Its indexes, its aborted transactions, the leader epochs and the state of the producers. For a worker thread, and a log
that nobody else has yet. It raises OSError.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from kwire.ports.files import FileSystem
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import NO_LEADER_EPOCH, BatchHeader
from kwire.storage import layout, reserve
from kwire.storage.batch_walk import verified
from kwire.storage.damage import misplaced, next_batch
from kwire.storage.leader_epochs import LeaderEpochCache
from kwire.storage.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from kwire.storage.producer_state import ProducerStateManager, ProducerUpdate
from kwire.storage.segment import Segment
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.transaction_index import AbortedTransaction
from kwire.storage.validated import Origin

logger = logging.getLogger(__name__)


def take_epoch(epochs: LeaderEpochCache, header: BatchHeader) -> None:
    """Counts in the leader epoch of a batch, which lies behind all that were counted in before."""
    latest = epochs.latest_epoch
    if header.leader_epoch > (NO_LEADER_EPOCH if latest is None else latest):
        epochs.assign(header.leader_epoch, header.base_offset)


class SegmentRecovery:
    """What goes through the segments of one log, in their order."""

    def __init__(
        self,
        files: FileSystem,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        flushed: int,
        index_interval: int,
    ) -> None:
        """`flushed`: up to that offset (exclusive) everything was on the disk once. `index_interval` in bytes."""
        self._files = files
        self._producers = producers
        self._epochs = epochs
        self._flushed = flushed
        self._index_interval = index_interval

    def recover(self, segment: Segment, follower: int | None) -> int:
        """Goes through one segment and cuts it at the first batch that is not whole, unless it was once.

        Returns its next offset. `follower`: where the next segment begins, if there is one.
        """
        interval = self._index_interval
        indexes = SegmentIndexes.empty(segment.base_offset)
        boundaries = self._known_positions(segment)
        segment.drop_transactions(segment.base_offset)
        position: int | None = 0
        valid = 0
        next_offset = segment.base_offset
        while position is not None:
            for at, header, batch in verified(segment.file, position, segment.size):
                if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                    break
                if header.base_offset != next_offset and misplaced(segment.file, at, header, segment.size, next_offset):
                    break
                indexes.add_header(at, header, interval)
                take_epoch(self._epochs, header)
                if header.producer_id >= 0:
                    self._take_up(segment, header, batch)
                valid = at + header.size
                next_offset = header.next_offset
                self._producers.end_offset = next_offset
            position = None
            if valid < segment.size and next_offset < self._flushed:
                # What was not flushed may be torn, and what comes behind it out of order. What was flushed and is no
                # batch any more was damaged since, and nothing speaks against what lies behind it.
                position = next_batch(segment.file, valid, segment.size, next_offset, boundaries)
                if position is None and follower is not None and follower <= self._flushed:
                    valid, next_offset = segment.size, follower
        if valid < segment.size:
            torn = not reserve.follows(segment.file, valid, segment.size)
            if torn:
                logger.warning(
                    "cutting %s from %d to %d bytes: no whole batch follows",
                    segment.path(layout.LOG),
                    segment.size,
                    valid,
                )
            segment.file.truncate(valid)
            if torn:  # else a power cut might bring back what came behind, to go on after what is new
                segment.file.sync()
            segment.size = valid
        indexes.end()
        indexes.rewrite()
        segment.install(indexes, None)
        return next_offset

    def _known_positions(self, segment: Segment) -> Collection[int]:
        """Where batches begin, if the index that was left can be read."""
        try:
            data = self._files.read(segment.path(layout.OFFSET_INDEX))
            return OffsetIndex.decode(segment.base_offset, data).positions
        except (FileNotFoundError, CorruptIndex):
            return ()

    def _take_up(self, segment: Segment, header: BatchHeader, batch: memoryview) -> None:
        update = ProducerUpdate(self._producers, Origin.REPLICATION)
        try:
            update.append_batch(header, batch)
        except KafkaError as error:
            logger.warning("%s at offset %d: %s", segment.path(layout.LOG), header.base_offset, error)
            return
        self._producers.apply(update)
        for completed in update.completed:
            if completed.aborted:
                stable = self._producers.last_stable_offset(completed)
                segment.add_transaction(
                    AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                )
            self._producers.complete(completed)
