"""The content of one file: as processes see it, as it is on the disk, and what lies between."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from kwire.ports.simulated_disk.order import Order

SECTOR = 512
"""What a device writes whole or not at all."""


class _Change(NamedTuple):
    moment: int
    """When, in the order of all changes of the disk."""
    position: int
    """Of a write; of a truncation the new size."""
    data: bytes | None
    """None for a truncation."""


class Content:
    """A file's bytes, whatever names it has."""

    __slots__ = ("_changes", "_on_disk", "data", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        """As processes see it."""
        self.modified_ms = modified_ms
        self._on_disk = b""
        self._changes: list[_Change] = []

    def write(self, moment: int, position: int, data: bytes) -> None:
        _write(self.data, position, data)
        self._changes.append(_Change(moment, position, data))

    def truncate(self, moment: int, size: int) -> None:
        _resize(self.data, size)
        self._changes.append(_Change(moment, size, None))

    def sync(self) -> None:
        """Everything is on the disk, but for what an earlier sync has failed to bring there."""
        kept = bytearray(self._on_disk)
        for change in self._changes:
            if change.data is None:
                _resize(kept, change.position)
            else:
                _write(kept, change.position, change.data)
        self._on_disk = bytes(kept)
        self._changes.clear()

    def give_up(self, order: Order, draw: Random, journal_end: int) -> None:
        """A sync has failed: what was to be written is taken for written, whether it was or not.

        So Linux does: processes go on to see it, the next sync succeeds, and the disk never learns of it.
        """
        self._on_disk = self.after_power_cut(order, draw, journal_end)
        self._changes.clear()

    def after_power_cut(self, order: Order, draw: Random, journal_end: int) -> bytes:
        """What is on the disk; `journal_end` is up to which moment (exclusive) the journal is there."""
        kept = bytearray(self._on_disk)
        last = draw.randint(0, len(self._changes))  # often none, and often all
        if order is Order.JOURNAL:
            self._replay_in_order(kept, last, draw, journal_end)
        else:
            self._replay_by_sectors(kept, last, draw)
        return bytes(kept)

    def lose(self, left: bytes) -> None:
        """The power was cut, and this is what is left."""
        self.data = bytearray(left)
        self._on_disk = left
        self._changes.clear()

    def _replay_in_order(self, kept: bytearray, last: int, draw: Random, journal_end: int) -> None:
        for number, change in enumerate(self._changes):
            if change.moment >= journal_end:
                break
            if change.data is None:
                if change.position < len(kept) or number < last:
                    _resize(kept, change.position)
            elif number < last:
                _write(kept, change.position, change.data)
            elif number == last:
                torn = change.data[: draw.randint(0, len(change.data))]
                if torn and change.position <= len(kept):
                    _write(kept, change.position, torn)

    def _replay_by_sectors(self, kept: bytearray, last: int, draw: Random) -> None:
        whole = draw.choice((0.0, 0.5, 1.0))
        for change in self._changes[:last]:
            if change.data is None:
                _resize(kept, change.position)
                continue
            if len(kept) < change.position + len(change.data):
                _resize(kept, change.position + len(change.data))
            at = change.position
            while at < change.position + len(change.data):
                end = min((at // SECTOR + 1) * SECTOR, change.position + len(change.data))
                if draw.random() < whole:
                    kept[at:end] = change.data[at - change.position : end - change.position]
                at = end


def _write(data: bytearray, position: int, new: bytes) -> None:
    if len(data) < position:
        _resize(data, position)
    data[position : position + len(new)] = new


def _resize(data: bytearray, size: int) -> None:
    if size < len(data):
        del data[size:]
    else:
        data.extend(bytes(size - len(data)))
