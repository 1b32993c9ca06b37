"""From batch to batch through a segment, saying why where it cannot go on."""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO

from kwire.protocol.records.header import CODEC_MASK, HEADER_SIZE, MAGIC, BatchHeader, crc_matches, read_header
from kwire.storage.reserve import PADDING, is_padding

WINDOW = 1024 * 1024
"""Bytes read at once: enough for the system to read ahead, and what stays in the processor's cache for the CRC."""

_KNOWN_ATTRIBUTES = 0x7F
_LARGEST_CODEC = 4


class NoBatch(Exception):
    """What begins at `position` is no whole batch; where `torn`, the bytes end before the batch does."""

    def __init__(self, position: int, text: str, *, torn: bool = False) -> None:
        super().__init__(text)
        self.position = position
        self.torn = torn


def batches(file: FileIO, size: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, whole batch) of the batches in the first `size` bytes. The CRC is the caller's to check.

    The memoryview is good until the next one is asked for. Raises NoBatch; padding up to the end is an end like any.
    """
    data, start, position = memoryview(b""), 0, 0
    while position < size:
        at = position - start
        if len(data) - at < HEADER_SIZE:
            data, start, at = _read(file, position, min(WINDOW, size - position)), position, 0
            if len(data) < HEADER_SIZE:
                if is_padding(data):
                    return
                raise NoBatch(position, f"a torn batch: {len(data)} bytes are less than a header", torn=True)
        header = read_header(data, at)
        if header.magic != MAGIC or header.batch_length < HEADER_SIZE - 12:
            if only_padding(file, position, size):
                return
            if _read(file, position, HEADER_SIZE) != data[at : at + HEADER_SIZE]:  # it has just been written
                data, start = memoryview(b""), position
                continue
            torn = position + HEADER_SIZE < size and only_padding(file, position + HEADER_SIZE, size)
            text = f"no batch of format v2 (magic {header.magic}, length {header.batch_length})"
            raise NoBatch(position, text, torn=torn)
        if header.size > size - position:
            raise NoBatch(position, f"a torn batch: {size - position} of {header.size} bytes", torn=True)
        if header.size > len(data) - at:
            wanted = min(max(WINDOW, header.size), size - position)
            data, start, at = _read(file, position, wanted), position, 0
            if len(data) < header.size:
                raise NoBatch(position, f"a torn batch: {len(data)} of {header.size} bytes", torn=True)
        batch = data[at : at + header.size]
        while batch[-1] == PADDING[0] and not crc_matches(header, batch):  # is it being written into a reserve?
            seen, batch = batch, _read(file, position, header.size)
            if batch == seen:
                break
        yield position, header, batch
        position += header.size


def only_padding(file: FileIO, position: int, size: int) -> bool:
    """Whether from `position` up to `size` there is nothing but a reserve, or what was preallocated."""
    while position < size:
        data = _read(file, position, min(WINDOW, size - position))
        if not data or not is_padding(data):
            return False
        position += len(data)
    return True


def header_fault(header: BatchHeader, next_offset: int, base_offset: int) -> str | None:
    """What is wrong with a header in a segment of this base offset, of which the log before ends at `next_offset`."""
    if header.base_offset < next_offset:
        return f"offset {header.base_offset} comes after offset {next_offset - 1}"
    if header.last_offset - base_offset > 2**31 - 1:
        return f"offset {header.last_offset} is out of reach of the segment"
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        return f"{header.count} records on {header.last_offset_delta + 1} offsets"
    if header.attributes & CODEC_MASK > _LARGEST_CODEC:
        return f"compression type {header.attributes & CODEC_MASK} is not known"
    if header.max_timestamp < -1:
        return f"max timestamp {header.max_timestamp}"
    return None


def header_oddity(header: BatchHeader) -> str | None:
    """What no client writes, and brokers take nevertheless, Apache Kafka among them."""
    if header.attributes & ~_KNOWN_ATTRIBUTES:
        return f"attributes {header.attributes & 0xFFFF:#06x} are not known"
    if header.producer_id < 0 and header.transactional:
        return "a transaction without a producer id"
    if header.producer_id >= 0 and header.producer_epoch < 0:
        return f"producer {header.producer_id} with epoch {header.producer_epoch}"
    return None


def _read(file: FileIO, position: int, size: int) -> memoryview:
    file.seek(position)
    return memoryview(file.read(size))
