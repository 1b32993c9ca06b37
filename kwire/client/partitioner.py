"""Which partition a record goes to: as the Java client decides, so that a key stays where it is whoever produces it."""

from __future__ import annotations

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with the seed Kafka uses; unsigned."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        part ^= part >> 24
        value = (value * _MULTIPLIER & _MASK) ^ (part * _MULTIPLIER & _MASK)
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value ^= value >> 13
    value = value * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition of a record with a key, out of `partitions`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
