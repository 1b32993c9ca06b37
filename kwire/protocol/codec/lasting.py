"""The items of an array that stay the same over many messages, such as the partitions of a large topic in Metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kwire.protocol.schema import Struct


class LastingItems:
    """Stands for a list in a field declared as a lasting array; its bytes are made once for each version and kept.

    `make` gives the `count` items whenever they are needed, and must give equal ones each time.
    """

    __slots__ = ("_count", "_make", "encoded")

    def __init__(self, count: int, make: Callable[[], Iterable[Struct]]) -> None:
        self._count = count
        self._make = make
        self.encoded: dict[int, bytes] = {}
        """The items' bytes by version, without their count."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Struct]:
        return iter(self._make())
