"""What the checkpoint of a log dir's high watermarks says, kept up by what moved.

It is looked at every few seconds (replica.high.watermark.checkpoint.interval.ms), and of thousands of partitions few
have moved since. The others are not touched: their lines stand ready, some together as one block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kwire.ports.turns import Turn
from kwire.storage import checkpoints
from kwire.storage.checkpoints import TopicPartition

BLOCK_PARTITIONS = 64
"""At most. Where one moved, so many lines are made anew, in 8 microseconds; 10,000 partitions are 157 blocks."""


class HighWatermarks:
    """The high watermarks of one dir. For the event loop."""

    def __init__(self) -> None:
        self._noted: list[TopicPartition] = []
        self._left: Mapping[TopicPartition, int] | None = None
        """What the last run left, until this one has written, or has found nothing else to say."""
        self._changed = True
        """Whether the file says anything else of a partition that is here, or speaks of one that was; or is missing."""
        self._removed: set[TopicPartition] = set()
        """Of which the file may still speak."""
        self._blocks: list[_Block] = []
        self._block_of: dict[TopicPartition, _Block] = {}

    def begin(self, left: Mapping[TopicPartition, int]) -> None:
        """Takes over what the file says, before anything else is told."""
        self._left, self._changed = left, False

    def note(self, partition: TopicPartition) -> None:
        """The partition is to be looked at: it moved, came here or went."""
        self._noted.append(partition)

    def take_noted(self) -> list[TopicPartition]:
        """Who takes them looks at them all, or notes those again that he has not come to. Some may be there twice."""
        noted, self._noted = self._noted, []
        return noted

    def mentions(self, partitions: Collection[TopicPartition]) -> bool:
        """Whether the file may speak of one of the partitions, as far as they were `put`."""
        if not self._removed.isdisjoint(partitions):
            return True
        if self._left is not None and not self._left.keys().isdisjoint(partitions):
            return True
        return not self._block_of.keys().isdisjoint(partitions)

    def put(self, partition: TopicPartition, offset: int) -> None:
        """The partition's high watermark (exclusive) is `offset`."""
        block = self._block_of.get(partition)
        if block is None:
            block = self._block_of[partition] = self._block_with_room()
            said = None if self._left is None else self._left.get(partition)
        else:
            said = block.offsets[partition]
            if said == offset:
                return
        block.offsets[partition] = offset
        block.lines = None
        if said != offset:
            self._changed = True

    def remove(self, partition: TopicPartition) -> None:
        """The partition is not in the dir any more, or never was."""
        block = self._block_of.pop(partition, None)
        if block is None:
            return
        self._changed = True
        self._removed.add(partition)
        del block.offsets[partition]
        block.lines = None
        if not block.offsets:
            self._blocks.remove(block)

    @property
    def due(self) -> bool:
        """Whether the file says anything else. `settle` is to be called once it does not."""
        return self._changed or (self._left is not None and len(self._left) != len(self._block_of))

    async def encoded(self, turn: Turn) -> bytes:
        """The whole file. Others may run meanwhile, but must not `put` or `remove`."""
        encoded = []
        for block in self._blocks:
            if block.lines is None:
                block.lines = checkpoints.encode_offset_lines(block.offsets)
                await turn.share()
            encoded.append(block.lines)
        return checkpoints.encode_offset_file(len(self._block_of), encoded)

    def settle(self) -> None:
        """The file says what `encoded` gave."""
        self._left, self._changed = None, False
        self._removed.clear()

    def _block_with_room(self) -> _Block:
        if not self._blocks or len(self._blocks[-1].offsets) >= BLOCK_PARTITIONS:
            self._blocks.append(_Block())
        return self._blocks[-1]


class _Block:
    """Some partitions, and their lines; None: to be made."""

    __slots__ = ("lines", "offsets")

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int] = {}
        self.lines: bytes | None = None
