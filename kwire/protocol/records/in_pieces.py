"""Going through what may be millions without keeping others from the interpreter.

Not to be compiled: a compiled loop that calls only what is compiled does not let go of the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

PIECE: Final = 1000


def in_pieces(skip: Callable[[bytes, int, int], int], data: bytes, position: int, count: int) -> int:
    """What `skip(data, position, count)` returns, where what is to be skipped may also be skipped piece by piece."""
    for left in range(count, 0, -PIECE):
        position = skip(data, position, min(left, PIECE))
    return position
