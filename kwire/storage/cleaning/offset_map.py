"""From a key to its latest offset, in memory that is known beforehand.

A table with open addressing, 24 bytes a place: a 16-byte hash of the key, and the offset plus 1 (0: the place is free).
Hashes instead of keys bound the memory whatever the keys' lengths. They are keyed with random bytes, so that nobody can
make up two keys of the same hash, of which one would be lost.
"""

from __future__ import annotations

from hashlib import blake2b
from mmap import mmap

_HASH_SIZE = 16
BYTES_PER_PLACE = _HASH_SIZE + 8
NO_OFFSET = -1


class OffsetMap:
    """Keys may be put as long as it is not `full`. Not for two threads at once."""

    __slots__ = ("_hashes", "_limit", "_offsets", "_places", "_secret", "_size", "latest_offset")

    def __init__(self, max_bytes: int, max_keys: int, load_factor: float, secret: bytes, start_offset: int = 0) -> None:
        """Takes at most `max_bytes`, less where `max_keys` keys need less. `secret`: random bytes, up to 64."""
        most = max(max_bytes // BYTES_PER_PLACE, 3)
        wanted = int(max_keys / max(load_factor, 0.01)) + 2
        self._places = _prime(most, -1) if wanted >= most else min(_prime(wanted, 1), _prime(most, -1))
        self._limit = min(max(1, int(self._places * load_factor)), self._places - 1)  # a search ends at a free place
        self._hashes = _zeros(self._places * _HASH_SIZE)
        self._offsets = memoryview(_zeros(self._places * 8)).cast("q")
        self._secret = secret
        self._size = 0
        self.latest_offset = start_offset - 1
        """From `start_offset` up to here (inclusive) the map knows all keys."""

    def __len__(self) -> int:
        return self._size

    @property
    def full(self) -> bool:
        """Whether no other key has a place."""
        return self._size >= self._limit

    def put(self, key: bytes, offset: int) -> None:
        """The key's latest offset is this one; offsets ascend."""
        hashed = blake2b(key, digest_size=_HASH_SIZE, key=self._secret).digest()
        place = self._find(hashed)
        if not self._offsets[place]:
            self._hashes[place * _HASH_SIZE : (place + 1) * _HASH_SIZE] = hashed
            self._size += 1
        self._offsets[place] = offset + 1

    def get(self, key: bytes) -> int:
        """The key's latest offset; NO_OFFSET where it has none."""
        hashed = blake2b(key, digest_size=_HASH_SIZE, key=self._secret).digest()
        return self._offsets[self._find(hashed)] - 1

    def _find(self, hashed: bytes) -> int:
        """The place that has the hash, or the free one that is for it."""
        offsets, hashes, places = self._offsets, self._hashes, self._places
        place = int.from_bytes(hashed[:8], "big") % places
        step = 0
        while offsets[place]:
            at = place * _HASH_SIZE
            if hashes[at : at + _HASH_SIZE] == hashed:
                break
            # A step of each hash's own keeps the ways short when the table is nearly full; the number of places is
            # prime, so that any step comes by all of them.
            step = step or int.from_bytes(hashed[8:], "big") % (places - 1) + 1
            place = (place + step) % places
        return place


def _zeros(size: int) -> mmap:
    """Memory that the system clears page by page as it is written: at once it would hold up everybody meanwhile."""
    try:
        return mmap(-1, size)
    except OSError as error:
        raise MemoryError(f"no {size} bytes for a map of offsets: {error}") from error


def _prime(number: int, step: int) -> int:
    """The nearest prime: from `number` on upwards (step 1), or downwards (-1)."""
    while number > 2 and any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += step
    return number
