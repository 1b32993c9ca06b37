"""The file that keeps a partition's producers: `<offset, 20 digits>.snapshot`, state as of that offset (exclusive).

Big endian::

    version int16 (1)
    crc     uint32, CRC-32C of everything after it
    count   int32, then for each producer 46 bytes:
        producer id              int64
        producer epoch           int16
        last sequence            int32   -1 if no batch of this epoch is known
        last offset              int64   -1 likewise
        offset delta             int32   last minus first sequence of the last batch
        timestamp                int64   of the last batch or marker
        coordinator epoch        int32   -1 if no marker was written
        txn first offset         int64   of the ongoing transaction, -1 if there is none

Only the last batch is kept: after a restart no older one is recognised as a duplicate.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct

from kwire.protocol.records.crc import crc32c
from kwire.storage.producer_entry import BatchMetadata, ProducerEntry

_VERSION = 1
_HEAD = Struct(">hIi")
_CRC_START = 6
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """The bytes are no producer snapshot of a known version with a right checksum."""


def encode_snapshot(entries: Collection[ProducerEntry]) -> bytes:
    """The file's bytes."""
    parts = [
        _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in entries
    ]
    body = len(parts).to_bytes(4, "big") + b"".join(parts)
    return _VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers in a file. CorruptSnapshotError."""
    if len(data) < _HEAD.size:
        raise CorruptSnapshotError(f"Snapshot of {len(data)} bytes is too short")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"Snapshot contained an unknown file version {version}")
    computed = crc32c(memoryview(data)[_CRC_START:])
    if checksum != computed:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {checksum}. Computed crc: {computed}"
        )
    if count < 0 or len(data) < _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"Snapshot of {len(data)} bytes does not hold {count} producers")
    entries = []
    for values in _ENTRY.iter_unpack(data[_HEAD.size : _HEAD.size + count * _ENTRY.size]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn_first_offset = values
        batches = [BatchMetadata(last_sequence, last_offset, delta, timestamp)] if last_offset >= 0 else []
        entries.append(
            ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, max(txn_first_offset, -1), batches)
        )
    return entries
