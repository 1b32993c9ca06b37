"""Randomness: ids and jitter."""

from __future__ import annotations

import random
import secrets
from typing import Protocol


class Randomness(Protocol):
    """A source of random bytes and integers."""

    def uuid(self) -> bytes:
        """16 bytes of a random (version 4) UUID, never all zero, never one whose base64 text begins with '-'."""

    def below(self, bound: int) -> int:
        """An integer in [0, bound)."""


def _version_4(raw: bytes) -> bytes:
    value = bytearray(raw)
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    if value[0] >> 2 == 0b111110:  # base64url '-': a tool would take such an id for an option
        value[0] &= 0x7F
    return bytes(value)


class SystemRandomness:
    """The operating system's generator."""

    def uuid(self) -> bytes:
        return _version_4(secrets.token_bytes(16))

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)


class SeededRandomness:
    """The same sequence again for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return _version_4(self._random.randbytes(16))

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)
