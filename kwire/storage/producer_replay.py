"""Rebuilding the producer state of a log from its latest snapshot and the batches after it."""

from __future__ import annotations

import logging

from kwire.ports.files import File
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import BatchHeader
from kwire.storage.damage import Damaged, readable
from kwire.storage.producer_state import ProducerStateManager, ProducerUpdate
from kwire.storage.segments import Segments
from kwire.storage.validated import Origin

logger = logging.getLogger(__name__)


def take_up(producers: ProducerStateManager, header: BatchHeader, file: File, position: int) -> None:
    """Counts in a batch that lies in the log; only a control batch is read beyond its header."""
    if header.producer_id >= 0:
        update = ProducerUpdate(producers, Origin.REPLICATION)
        try:
            update.append_batch(header, file.pread(header.size, position) if header.control else b"")
        except KafkaError as error:  # it was appended under other rules: the records count, whatever we think of them
            logger.warning("%s at offset %d: %s", file.path, header.base_offset, error)
        else:
            producers.apply(update)
            for completed in update.completed:
                producers.complete(completed)
    producers.end_offset = header.next_offset


def replay(
    producers: ProducerStateManager, segments: Segments, log_start_offset: int, end_offset: int, now_ms: int
) -> None:
    """Makes the state that of the log up to `end_offset` (exclusive), and takes a snapshot of it unless it is empty.

    Raises OSError.
    """
    producers.truncate_and_reload(log_start_offset, end_offset, now_ms)
    if producers.end_offset < end_offset:
        for segment in segments.from_offset(producers.end_offset):
            if segment.base_offset >= end_offset:
                break
            try:
                found = segment.find(producers.end_offset)
            except Damaged:
                found = 0, 0  # what is readable is gone through from the beginning
            if found is None:
                continue
            for position, header in readable(segment.file, found[0], segment.size, segment.base_offset):
                if header.base_offset >= end_offset:
                    break
                if header.next_offset <= producers.end_offset:
                    continue
                take_up(producers, header, segment.file, position)
    producers.end_offset = end_offset
    if producers.entries or producers.snapshots:  # otherwise it would say nothing, and there may be thousands of logs
        producers.take_snapshot()
