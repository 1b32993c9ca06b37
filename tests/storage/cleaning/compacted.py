"""A compacted log in memory, what is in it, and its cleaning."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import NamedTuple

from kwire.ports.memory_files import Fault
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import BatchHeader, iter_batches
from kwire.protocol.records.record import Record, iter_records
from kwire.storage.cleaning.cleanable import Cleanable, look
from kwire.storage.cleaning.cleaning import Cleaned, Cleaning, Throttle
from kwire.storage.cleaning.work import CleanerSettings, CleaningWork
from kwire.storage.log import Log
from kwire.storage.validated import Origin

from ..support import Place

DELETE_RETENTION_MS = 1000
SETTINGS = CleanerSettings(map_bytes=1 << 20, load_factor=0.9, buffer_bytes=1 << 16, piece_bytes=500)

Pair = tuple[str, str | None]


async def unthrottled(size: int) -> None:
    """Bytes cost no time."""


def compacted_place(**values: object) -> Place:
    return Place(**{"cleanup_policy": frozenset({"compact"}), "delete_retention_ms": DELETE_RETENTION_MS, **values})


def killed_after(operations: int) -> Fault:
    """Lets so many changes of files through, and no others."""
    left = operations

    def fault(operation: str, path: str, size: int) -> int | None:
        nonlocal left
        left -= operation in ("write", "rename", "truncate", "remove", "sync")
        if left < 0:
            raise OSError(errno.EIO, "killed", path)
        return None

    return fault


async def put(
    log: Log, *pairs: Pair, time_ms: int | None = None, origin: Origin = Origin.CLIENT, **options: object
) -> int:
    """Appends one batch of these keys and values; its first offset."""
    time = log.services.clock.wall_ms() if time_ms is None else time_ms
    records = [
        Record(index, time + index, key.encode(), None if value is None else value.encode(), [("h", b"v")])
        for index, (key, value) in enumerate(pairs)
    ]
    data = build_batch(records, **options)  # type: ignore[arg-type]
    info = await log.append_as_leader(data, 0, origin=origin)
    log.set_high_watermark(log.log_end_offset)
    return info.first_offset


async def end(log: Log, producer_id: int = 7, epoch: int = 0, *, commit: bool, coordinator_epoch: int = 1) -> None:
    marker = build_end_txn_marker(
        producer_id,
        epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        timestamp=log.services.clock.wall_ms(),
    )
    await log.append_as_leader(marker, 0, origin=Origin.COORDINATOR)
    log.set_high_watermark(log.log_end_offset)


async def clean(
    log: Log,
    checkpoint: int | None = None,
    *,
    roll: bool = True,
    settings: CleanerSettings = SETTINGS,
    throttle: Throttle = unthrottled,
) -> Cleaned:
    """Cleans everything but a new active segment; without `roll`, but the active one there is."""
    if roll:
        log.roll()
    cleanable = await look(log, checkpoint, log.services.clock.wall_ms())
    return await clean_it(cleanable, settings, throttle)


async def clean_it(
    cleanable: Cleanable, settings: CleanerSettings = SETTINGS, throttle: Throttle = unthrottled
) -> Cleaned:
    services = cleanable.log.services
    worker = await services.workers.start(CleaningWork, services.files)
    return await Cleaning(cleanable, settings, throttle, worker).run()


class Seen(NamedTuple):
    offset: int
    key: str
    value: str | None


def batches(log: Log, offset: int | None = None) -> list[tuple[BatchHeader, bytes]]:
    """All batches as a fetch from that offset on gets them."""
    at = log.log_start_offset if offset is None else offset
    found = []
    while at < log.log_end_offset:
        part = log.read(at, 1 << 20, min_one=True).slice
        if part is None:
            break
        for header, batch in iter_batches(part.read()):
            found.append((header, bytes(batch)))
            at = max(at, header.next_offset)
    return found


def records(log: Log, offset: int | None = None) -> list[Seen]:
    """All records of all transactions, without markers."""
    start = log.log_start_offset if offset is None else offset
    return [
        Seen(record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for header, batch in batches(log, offset)
        if not header.control
        for record in iter_records(batch)
        if record.offset >= start
    ]


def latest(pairs: Sequence[Seen]) -> list[Seen]:
    """What compaction makes of records: the last one of each key, in order of offsets."""
    by_key = {seen.key: seen for seen in pairs}
    return sorted(by_key.values())
