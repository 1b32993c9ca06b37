"""Control records: the markers that end a transaction on a partition (KIP-98).

The key is version int16, type int16; the value of a commit or abort marker version int16, coordinator_epoch int32.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import NO_LEADER_EPOCH
from kwire.protocol.records.record import Record, iter_records

_KEY = Struct(">hh")
_MARKER = Struct(">hi")


class ControlType(IntEnum):
    """What a control record says (its key's second field)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """A commit or abort marker."""

    commit: bool
    coordinator_epoch: int
    timestamp: int
    offset: int


def control_type(key: bytes | None) -> ControlType:
    """The type in a control record's key; UNKNOWN for one to be ignored. CorruptBatchError if it is no such key."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatchError(ErrorCode.INVALID_RECORD, "Control record key is too short")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatchError(ErrorCode.INVALID_RECORD, f"Invalid version found for control record: {version}")
    return ControlType(number) if 0 <= number <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def build_end_txn_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The control batch that ends a producer's transaction on a partition."""
    key = _KEY.pack(0, ControlType.COMMIT if commit else ControlType.ABORT)
    return build_batch(
        [Record(base_offset, timestamp, key, _MARKER.pack(0, coordinator_epoch), [])],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_end_txn_marker(batch: Buffer) -> EndTxnMarker | None:
    """The marker in a control batch of a producer; None if compaction has emptied the batch.

    CorruptBatchError (INVALID_RECORD) if the first record is not a well-formed commit or abort marker.
    """
    for record in iter_records(batch):
        kind = control_type(record.key)
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            raise CorruptBatchError(
                ErrorCode.INVALID_RECORD, f"Invalid control record type for end transaction marker {kind.name}"
            )
        if record.value is None or len(record.value) < _MARKER.size:
            raise CorruptBatchError(ErrorCode.INVALID_RECORD, "End transaction marker is too short")
        version, coordinator_epoch = _MARKER.unpack_from(record.value)
        if version < 0:
            raise CorruptBatchError(
                ErrorCode.INVALID_RECORD, f"Invalid version found for end transaction marker: {version}"
            )
        return EndTxnMarker(kind is ControlType.COMMIT, coordinator_epoch, record.timestamp, record.offset)
    return None
