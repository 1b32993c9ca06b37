"""The offset index and the time index of a segment, compared with its batches as they come.

An entry of .index must name the beginning of a batch, and the last offset of that or (where several were appended at
once, as Apache Kafka does it) of a later one: look-ups read on from there. One of .timeindex must name a batch that
brought the largest timestamp so far.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from kwire.protocol.records.header import BatchHeader

Tell = Callable[[int | None, str], None]
"""Takes the byte of the index file and what is wrong there."""

_OFFSET_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")


class _Entries:
    """The entries of an index one after the other."""

    def __init__(self, data: bytes, entry: Struct, tell: Tell) -> None:
        used = len(data.rstrip(b"\0"))  # behind those in use there may be zeros, as in an active segment's index
        self._size = entry.size
        end = -(-used // entry.size) * entry.size
        if end > len(data):
            tell(end - entry.size, f"a torn entry: {len(data)} bytes are not a multiple of {entry.size}")
            end -= entry.size
        self._iterator = entry.iter_unpack(memoryview(data)[:end])
        self._number = -1
        self.entry: tuple[int, int] | None = (-1, -1)
        self.advance()

    @property
    def position(self) -> int:
        """The byte at which the entry begins."""
        return self._number * self._size

    def advance(self) -> bool:
        """Goes to the next entry; whether both columns ascend."""
        before = self.entry
        self._number += 1
        self.entry = next(self._iterator, None)
        return before is None or self.entry is None or (self.entry[0] > before[0] and self.entry[1] > before[1])


class OffsetIndexCheck:
    """`batch` for each batch of the segment, then `end`. Tells of the first fault alone: the others follow from it."""

    def __init__(self, data: bytes, base_offset: int, tell: Tell) -> None:
        self._entries: _Entries | None = _Entries(data, _OFFSET_ENTRY, tell)
        self._base_offset = base_offset
        self._tell = tell
        self._awaited: int | None = None
        """The offset of the entry before, until a batch ends with it."""

    def batch(self, position: int, header: BatchHeader) -> None:
        entries = self._entries
        if entries is None:
            return
        self._look_for_entry(entries, position, header)
        if self._awaited is not None and self._awaited <= header.last_offset:
            if self._awaited < header.last_offset and self._entries is not None:
                self._tell(entries.position - _OFFSET_ENTRY.size, f"offset {self._awaited} is no batch's last")
                self._entries = None
            self._awaited = None

    def _look_for_entry(self, entries: _Entries, position: int, header: BatchHeader) -> None:
        if entries.entry is None or entries.entry[1] > position:
            return
        relative, place = entries.entry
        offset = self._base_offset + relative
        if place < position:
            self._fail(f"byte {place} of the log is not where a batch begins")
        elif offset < header.base_offset:
            self._fail(f"offset {offset} is not in the batch at byte {place}, which begins at {header.base_offset}")
        else:
            self._awaited = offset
            at = entries.position + _OFFSET_ENTRY.size
            if not entries.advance():
                self._tell(at, "the entries do not ascend")
                self._entries = None

    def end(self) -> None:
        entries = self._entries
        if entries is None:
            return
        if self._awaited is not None:
            self._tell(entries.position - _OFFSET_ENTRY.size, f"offset {self._awaited} is no batch's last")
        elif entries.entry is not None:
            self._fail(f"byte {entries.entry[1]} of the log is behind its last batch")

    def _fail(self, text: str) -> None:
        assert self._entries is not None
        self._tell(self._entries.position, text)
        self._entries = None


class TimeIndexCheck:
    """`batch` for each batch of the segment, then `end`. Tells of the first fault alone."""

    def __init__(self, data: bytes, base_offset: int, tell: Tell) -> None:
        self._entries: _Entries | None = _Entries(data, _TIME_ENTRY, tell)
        self._base_offset = base_offset
        self._tell = tell
        self._newest = -1
        self._last = -1

    def batch(self, header: BatchHeader) -> None:
        brings = header.max_timestamp > self._newest
        if brings:
            self._newest = header.max_timestamp
        entries = self._entries
        if entries is None or entries.entry is None:
            return
        timestamp, relative = entries.entry
        offset = self._base_offset + relative
        if offset > header.last_offset:
            return
        if offset < header.base_offset or not brings or timestamp != header.max_timestamp:
            self._fail(f"offset {offset} is not of the batch that brought timestamp {timestamp}")
            return
        self._last = timestamp
        at = entries.position + _TIME_ENTRY.size
        if not entries.advance():
            self._tell(at, "the entries do not ascend")
            self._entries = None

    def end(self, *, sealed: bool) -> None:
        """`sealed`: the segment takes no more batches, so that its last entry has its newest timestamp."""
        entries = self._entries
        if entries is None:
            return
        if entries.entry is not None:
            self._fail(f"offset {self._base_offset + entries.entry[1]} is behind the end of the segment")
        elif sealed and self._last != self._newest:
            self._tell(None, f"the last entry is of {self._last}, the newest record of {self._newest}")

    def _fail(self, text: str) -> None:
        assert self._entries is not None
        self._tell(self._entries.position, text)
        self._entries = None
