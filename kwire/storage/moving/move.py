"""One move of a log to another log dir, from its first byte to the swap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from kwire.ports.files import File
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage import layout
from kwire.storage.log_dir import LogDir
from kwire.storage.moving import copying, swap
from kwire.storage.moving.copying import Settling, Unreadable
from kwire.storage.moving.future import FutureLog, SegmentCopy
from kwire.storage.segment import Segment

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager
    from kwire.storage.throttle import Throttle

T = TypeVar("T")

PIECE_BYTES = 1024 * 1024
"""Read, checked and written at once: about a millisecond of the interpreter's time."""


_ROOM_LOOK_S = 1.0
"""How often it is looked whether a full log dir has room again."""


class MoveEnded(Exception):
    """The move was given up, the log was deleted, or a log dir failed."""


class _NoRoom(Exception):
    """The target is full while the log's flushes are held: nobody shall wait for that."""


class Move:
    """For the event loop's thread; `run` once."""

    def __init__(self, manager: LogManager, future: FutureLog, throttle: Throttle) -> None:
        self._manager = manager
        self._future = future
        self._throttle = throttle
        self._files = manager.services.files
        self._holding = False
        """Whether the log's flushes are held."""

    async def run(self) -> LogDir:
        """When it returns, the log is in the other dir; returns the one it was in.

        Raises MoveEnded; CorruptBatchError where the log is damaged; KAFKA_STORAGE_ERROR where one of the dirs failed.
        """
        while True:
            await self._catch_up()
            try:
                return await self._take_over()
            except _NoRoom:
                continue

    async def _catch_up(self) -> None:
        """Returns when only a little is missing in the copy."""
        while True:
            await self._until_room(swap.TAIL_BYTES)
            self._check()
            if swap.ready(self._future):
                return
            await self._copy()
            if not self._future.settled:
                await self._settle()

    async def _take_over(self) -> LogDir:
        """Puts the copy in the log's place, and makes that last; returns the dir that the log was in.

        Whoever was promised that a record is on the disk, in this run of the broker or an earlier one, is to find it
        there whatever happens: so no flush of the log ends between the moment when the copy has on the disk all that
        the log has, and the one when the copy is the log, by its names on the disk too.
        """
        manager, future, log = self._manager, self._future, self._future.source
        async with log.flushes_held():
            promised = log.log_end_offset
            self._holding = True
            try:
                while True:
                    self._check()
                    lasting = future.recovery_point >= min(promised, log.log_end_offset)
                    if lasting and swap.ready(future):
                        break
                    await self._copy()
                    if not lasting or not future.settled:
                        await self._settle()
            finally:
                self._holding = False
            left = swap.swap_in(manager, future)
            with trio.CancelScope(shield=True):
                await swap.finish(manager, future, left)
        return left.log_dir

    def _check(self) -> None:
        future, log = self._future, self._future.source
        wanted = self._manager.moves.futures.get(log.key) is future
        if not wanted or log.deleted or not log.log_dir.online or not future.log_dir.online:
            raise MoveEnded

    async def _do(self, work: Callable[..., T], *arguments: object) -> T:
        """Runs it in a worker thread. Raises MoveEnded, Unreadable, and KAFKA_STORAGE_ERROR where the target fails."""
        try:
            done = await self._manager.services.executor.run(work, *arguments)
        except Unreadable:
            self._check()
            raise
        except OSError as error:
            raise self._future.log_dir.fail(f"move of {self._future.source.name} failed", error) from error
        self._check()
        return done

    # Copying

    async def _copy(self) -> None:
        """Copies until all but a little is copied."""
        await self._forget_void()
        segments = self._future.source.segments
        version = segments.version
        for segment in list(segments):
            await self._copy_segment(segment)
            if segments.version != version:  # some of them may be gone
                return
        await self._copy_snapshots()
        await self._load_indexes(segments.active)

    async def _load_indexes(self, active: Segment) -> None:
        """The copy's are written from those in memory."""
        if active.append_waits:
            version = active.version
            try:
                indexes = await self._do(copying.load_indexes, active)
            except Unreadable as error:
                if active.version == version:
                    raise self._future.source.failed("move", error.error) from error.error
            else:
                if active.version == version:
                    active.take_indexes(indexes)

    async def _forget_void(self) -> None:
        """Forgets the copies of segments that were truncated, removed or replaced."""
        future, log = self._future, self._future.source
        present = set(map(id, log.segments))
        void = [
            base_offset for base_offset, copy in future.copies.items() if copy.void or id(copy.source) not in present
        ]
        first = log.segments.first.base_offset
        for base_offset in void:
            del future.copies[base_offset]
            if base_offset >= first:
                future.unsettle(base_offset)
        if void:
            await self._do(copying.drop, self._files, [future.path(base_offset, "") for base_offset in void])

    async def _copy_segment(self, segment: Segment) -> None:
        future, log = self._future, self._future.source
        copy = future.copies.get(segment.base_offset)
        if copy is None:
            version, all_version = segment.version, log.segments.version
            file = await self._do(self._open, future.path(segment.base_offset, layout.LOG))
            copy = future.copies[segment.base_offset] = SegmentCopy(segment, version, file)
            if log.segments.version != all_version:
                return
        if copy.complete or copy.void or copy.source is not segment:
            return
        seen = segment.size
        try:
            while copy.size < (self._copied_up_to(segment, seen) if segment is log.segments.active else segment.size):
                await self._copy_piece(segment, copy)
                if copy.void:
                    return
            if segment is not log.segments.active:
                await self._do(copying.complete, self._files, copy, future.path(segment.base_offset, ""))
                copy.complete = True
        except (CorruptBatchError, Unreadable) as error:
            if copy.void:  # it was truncated or removed while it was read
                return
            if isinstance(error, Unreadable):
                raise log.failed("move", error.error) from error.error
            raise

    def _copied_up_to(self, active: Segment, seen: int) -> int:
        """Which part (bytes) of the active segment is worth copying, of which there were `seen` at first: what is held
        for it is to be short, however fast the log grows."""
        return seen if self._holding else active.size - swap.TAIL_BYTES

    async def _copy_piece(self, segment: Segment, copy: SegmentCopy) -> None:
        await self._until_room(min(PIECE_BYTES, segment.size - copy.size))
        if copy.void:  # it was truncated or removed while room was waited for
            return
        try:
            source = segment.file
        except OSError as error:
            raise self._future.source.failed("move", error) from error
        size, next_offset = await self._do(
            copying.copy_batches, source, copy.file, copy.size, segment.size, PIECE_BYTES
        )
        copy.size += size
        copy.next_offset = next_offset
        if not self._holding:
            await self._throttle(size)
        self._check()

    async def _until_room(self, size: int) -> None:
        room = self._future.log_dir.room
        while room is not None and not room.admits(size):
            if self._holding:
                raise _NoRoom
            await trio.sleep(_ROOM_LOOK_S)
            self._check()

    def _open(self, path: str) -> File:
        return self._files.open(path, create=True)

    async def _copy_snapshots(self) -> None:
        future, producers = self._future, self._future.source.producer_state
        missing = [offset for offset in producers.snapshots if offset not in future.snapshots]
        if missing:
            paths = [(producers.snapshot_path(offset), future.path(offset, layout.SNAPSHOT)) for offset in missing]
            try:
                await self._do(copying.copy_snapshots, self._files, paths)
            except Unreadable as error:
                raise future.source.failed("move", error.error) from error.error
            future.snapshots.update(missing)

    async def _settle(self) -> None:
        future = self._future
        end_offset, settling = future.end_offset, Settling.of(future)
        future.settled = True
        await self._do(copying.settle, self._files, settling, future.log_dir.path)
        future.epochs = settling.epochs
        if future.settled:
            future.recovery_point = end_offset
            await self._manager.upkeep.checkpoint_dir(future.log_dir)
