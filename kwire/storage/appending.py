"""Appending to a log: the batches are written, indexed and counted in, without giving up control in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwire.ports.files import Buffer
from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.header import CONTROL_FLAG, LOG_OVERHEAD, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from kwire.storage import early_writing, reserve, rolling
from kwire.storage.append_info import AppendInfo
from kwire.storage.producer_entry import BatchMetadata
from kwire.storage.producer_state import ProducerUpdate
from kwire.storage.received import Placed
from kwire.storage.transaction_index import AbortedTransaction
from kwire.storage.validated import Origin
from kwire.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from kwire.storage.log import Log
    from kwire.storage.segment import Segment

_new: Final = tuple.__new__
"""Makes a named tuple in one call of C."""


def append(
    log: Log,
    batches: list[Placed],
    log_append_time: int,
    origin: Origin,
    transaction_version: int = 0,
    verification: VerificationGuard | None = None,
) -> AppendInfo:
    """Writes batches that have their offsets, and counts them in: all of it or nothing. See `Log.append_as_leader`."""
    if log.deleted or log.log_dir.offline_reason is not None:
        log.check_usable()
    producers = log.producer_state
    buffers: list[Buffer] = []
    size = 0
    newest = NO_TIMESTAMP
    last_offset = -1
    update = following = None
    for header, base_offset, parts in batches:
        last_offset = base_offset + header.last_offset_delta
        size += header.batch_length + LOG_OVERHEAD
        if header.max_timestamp > newest:
            newest = header.max_timestamp
        buffers += parts
        if header.producer_id >= 0:
            if origin is Origin.CLIENT:
                following = producers.next_of(header) if len(batches) == 1 else None
                if following is not None:
                    continue
                if (known := producers.find_duplicate(header)) is not None:
                    return _duplicate(log, known)
            if header.attributes & TRANSACTIONAL_FLAG and origin is not Origin.REPLICATION:
                producers.check_verified(header, verification, demanded=log.services.verifies_transactions)
            update = update or ProducerUpdate(producers, origin)
            marker = read_end_txn_marker(b"".join(parts)) if header.attributes & CONTROL_FLAG else None
            update.append(header, base_offset, marker, transaction_version)
    first_offset = batches[0].base_offset
    room = log.log_dir.room
    if room is not None and origin is not Origin.TIERING:
        room.check(size, coordinator=origin is Origin.COORDINATOR)
    try:
        segment = rolling.segment_for(log, size, first_offset, last_offset, newest)
        if segment.size >= segment.reserve_due:
            _make_reserve(log, segment)
        segment.append(buffers, batches)
        if segment.size >= segment.writing_due:
            early_writing.schedule(log, segment)
        log.log_end_offset = last_offset + 1
        log.changed = True
        if update is not None:
            _apply(log, update)
        elif following is not None:
            following.remember(header, header.base_sequence + header.last_offset_delta, first_offset)
    except OSError as error:
        raise log.failed("append", error) from error
    producers.end_offset = last_offset + 1
    return _new(AppendInfo, (first_offset, last_offset, newest, log_append_time, log.log_start_offset, False))


def _make_reserve(log: Log, segment: Segment) -> None:
    room = log.log_dir.room
    if log.config.flush_messages >= reserve.FLUSHED_OFTEN and (room is None or room.spares(reserve.MOST)):
        segment.make_reserve(log.config.segment_bytes)
        log.services.reserving.add(log)


def _duplicate(log: Log, known: BatchMetadata) -> AppendInfo:
    return AppendInfo(
        known.first_offset, known.last_offset, known.timestamp, known.timestamp, log.log_start_offset, True
    )


def _apply(log: Log, update: ProducerUpdate) -> None:
    producers = log.producer_state
    producers.apply(update)
    for completed in update.completed:
        if completed.aborted:
            log.segments.active.add_transaction(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset(completed),
                )
            )
        producers.complete(completed)
