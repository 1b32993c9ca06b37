"""From batch to batch through a file: by headers alone, or verified byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwire.ports.files import File
from kwire.protocol.records.header import HEADER_SIZE, MAGIC, BatchHeader, crc_matches, read_header
from kwire.storage.cold_reads import ColdRead, Missing

SEARCH_WINDOW: Final = 16 * 1024
"""Bytes read at once while looking for one batch: a little more than lies between two index entries."""

SCAN_WINDOW: Final = 1024 * 1024
"""Bytes read at once while going through a whole segment."""


def plausible(header: BatchHeader, room: int) -> bool:
    """Whether these bytes can be the header of a batch that fits into `room` bytes (the CRC aside)."""
    return (
        header.magic == MAGIC
        and HEADER_SIZE - 12 <= header.batch_length <= room - 12
        and header.last_offset_delta >= 0
        and header.base_offset >= 0
    )


def headers(
    file: File, start: int, end: int, window: int = SEARCH_WINDOW, *, may_block: bool = True
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the batches in [start, end), as far as the bytes look like batches.

    Raises ColdRead where `may_block` is False and the bytes are not in memory.
    """
    position = start
    data, data_start, batch_size = b"", start, 0
    while end - position >= HEADER_SIZE:
        at = position - data_start
        if at + HEADER_SIZE > len(data):
            size = min(window if batch_size < window else HEADER_SIZE, end - position)
            if not may_block and not file.resident(position, size):
                raise ColdRead(Missing(file, position, size))
            data, data_start, at = file.pread(size, position), position, 0
            if len(data) < HEADER_SIZE:
                return
        header = read_header(data, at)
        if not plausible(header, end - position):
            return
        yield position, header
        batch_size = header.size
        position += batch_size


def verified(
    file: File, start: int, end: int, window: int = SCAN_WINDOW
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, whole batch) of the batches in [start, end) up to the first that is torn or corrupt.

    The memoryview is good until the next one is asked for.
    """
    position = start
    data, data_start = memoryview(b""), start
    while end - position >= HEADER_SIZE:
        at = position - data_start
        if at + HEADER_SIZE > len(data):
            data, data_start, at = memoryview(file.pread(min(window, end - position), position)), position, 0
            if len(data) < HEADER_SIZE:
                return
        header = read_header(data, at)
        if not plausible(header, end - position):
            return
        if at + header.size > len(data):
            size = min(max(window, header.size), end - position)
            data, data_start, at = memoryview(file.pread(size, position)), position, 0
            if len(data) < header.size:
                return
        batch = data[at : at + header.size]
        if not crc_matches(header, batch):
            return
        yield position, header, batch
        position += header.size
