"""A partition's producers in front of their state, without a log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import EndTxnMarker, build_end_txn_marker
from kwire.protocol.records.header import BatchHeader, read_header
from kwire.storage.producer_entry import CompletedTxn
from kwire.storage.producer_state import ProducerStateManager, ProducerUpdate
from kwire.storage.validated import Origin

DIRECTORY = "/data/t-0"
DAY = 86_400_000
NOW = 1_795_236_605_466


class Partition:
    """A log that keeps no records, only what the producers' state needs of it."""

    def __init__(self) -> None:
        self.files = MemoryFileSystem()
        self.files.make_dirs(DIRECTORY)
        self.state = self.reopened()
        self.end = 0

    def reopened(self) -> ProducerStateManager:
        return ProducerStateManager(self.files, DIRECTORY, DAY)

    def append(
        self,
        sequence: int,
        count: int = 3,
        *,
        pid: int = 500,
        epoch: int = 0,
        txn: bool = False,
        origin: Origin = Origin.CLIENT,
        timestamp: int = NOW,
    ) -> int:
        """What a produce request is answered: the base offset."""
        header = data_header(sequence, count, pid=pid, epoch=epoch, txn=txn, timestamp=timestamp)
        if origin is Origin.CLIENT:
            duplicate = self.state.find_duplicate(header)
            if duplicate is not None:
                return duplicate.first_offset
        update = ProducerUpdate(self.state, origin)
        update.append(header, self.end)
        self.state.apply(update)
        first = self.end
        self.end += count
        self.state.end_offset = self.end
        return first

    def mark(
        self,
        commit: bool = True,
        *,
        pid: int = 500,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        origin: Origin = Origin.COORDINATOR,
        version: int = 0,
    ) -> list[CompletedTxn]:
        """Ends the producer's transaction; returns what the log then writes to the transaction index."""
        batch = build_end_txn_marker(pid, epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=NOW)
        update = ProducerUpdate(self.state, origin)
        marker = EndTxnMarker(commit, coordinator_epoch, NOW, self.end)
        update.append(read_header(batch), self.end, marker, version)
        self.state.apply(update)
        for completed in update.completed:
            self.state.complete(completed)
        self.end += 1
        self.state.end_offset = self.end
        return update.completed


def data_header(
    sequence: int, count: int = 3, *, pid: int = 500, epoch: int = 0, txn: bool = False, timestamp: int = NOW
) -> BatchHeader:
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0x10 if txn else 0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        count=count,
    )


def refused(call: Callable[..., object], *arguments: object, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **options)
    return caught.value.code
