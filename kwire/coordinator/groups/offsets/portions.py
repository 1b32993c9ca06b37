"""Tombstones for many offsets are written in portions: a batch has its limits, and nobody shall wait long for them."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.runtime.outcome import CoordinatorRecord
from kwire.protocol.coordinator_records.serde import encode_key

_RECORDS = 1000
_BYTES = 250_000
_OVERHEAD = 32
"""Bytes of a record without its key, at most."""


def portion(tombstones: Iterable[CoordinatorRecord]) -> tuple[list[CoordinatorRecord], bool]:
    """The first of them, at least one where there is one, and whether there are more."""
    taken: list[CoordinatorRecord] = []
    size = 0
    for tombstone in tombstones:
        size += len(encode_key(tombstone.key)) + _OVERHEAD
        if taken and (len(taken) == _RECORDS or size > _BYTES):
            return taken, True
        taken.append(tombstone)
    return taken, False
