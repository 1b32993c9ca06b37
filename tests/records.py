"""Records to send, where nothing depends on more than their keys and values."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.protocol.records.record import Record


def simple_records(
    pairs: Iterable[tuple[bytes | None, bytes | None]], timestamp: int, base_offset: int = 0
) -> list[Record]:
    """Records of these keys and values, all of one time, at offsets from `base_offset` on."""
    return [Record(base_offset + index, timestamp, key, value, []) for index, (key, value) in enumerate(pairs)]
