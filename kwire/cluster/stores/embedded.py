"""The metadata of a single broker, in a journal in its first log directory: no other process is needed.

    store = await EmbeddedStore.open(files, executor, randomness, log_dirs[0])
    ...
    await store.close()

A commit returns when it is on disk (fdatasync) and the subscribers know. Commits that come while one is being written
wait and then go to disk together, in one write.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence

import trio

from kwire.cluster.stores.journal import (
    CLEAN,
    JOURNAL,
    StoreError,
    commits_line,
    image_line,
    replay,
    was_closed_in_order,
)
from kwire.metadata.changes import Change, InvalidChange, LeaderEpochsBumped, apply
from kwire.metadata.image import MetadataImage
from kwire.metadata.store import Publisher, Subscriber, VersionConflict
from kwire.ports.executor import Executor
from kwire.ports.files import File, FileSystem
from kwire.ports.randomness import Randomness
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.layout import CLUSTER_METADATA_DIR

__all__ = ["EmbeddedStore", "StoreError"]

logger = logging.getLogger(__name__)

COMPACT_BYTES = 1 << 20
"""A journal smaller than this is never replaced by its image: reading it takes some ten milliseconds."""

COMPACT_FACTOR = 4
"""A journal is replaced when it has this many times the size of the image it began with."""


class _Pending:
    """A commit that waits for its turn, and what became of it."""

    __slots__ = ("changes", "error", "expected_version", "image", "settled")

    def __init__(self, changes: Sequence[Change], expected_version: int | None) -> None:
        self.changes = changes
        self.expected_version = expected_version
        self.image: MetadataImage | None = None
        self.error: Exception | None = None
        self.settled = False

    def outcome(self) -> MetadataImage:
        if self.error is not None:
            raise self.error
        assert self.image is not None
        return self.image


class EmbeddedStore:
    """A MetadataStore on a journal. `open` makes one."""

    def __init__(self, files: FileSystem, executor: Executor, directory: str, opened: _Opened) -> None:
        self._files = files
        self._executor = executor
        self._directory = directory
        self._path = f"{directory}/{JOURNAL}"
        self._file = opened.file
        self._end = opened.end
        self._compact_at = max(COMPACT_BYTES, COMPACT_FACTOR * opened.end)
        self._committed = opened.image
        self._publisher = Publisher(opened.image)
        self._queue: list[_Pending] = []
        self._lock = trio.Lock()
        self._refusal: str | None = None
        """Why nothing can be committed (any more)."""
        self._broken = False

    @classmethod
    async def open(
        cls,
        files: FileSystem,
        executor: Executor,
        randomness: Randomness,
        directory: str,
        *,
        cluster_id: str | None = None,
    ) -> EmbeddedStore:
        """Reads what is in the directory, which must exist and be locked by the caller, or begins anew.

        A new store's cluster id is `cluster_id`, or a random one. After a stop that was not in order each partition's
        leader epoch is one higher than it was. Raises StoreError where the journal is damaged or cannot be read.
        """
        new_id = cluster_id or uuids.to_text(randomness.uuid())
        try:
            opened = await executor.run(_open, files, directory, new_id)
        except OSError as error:
            raise StoreError(f"cannot open the metadata in {directory}: {error.strerror or error}") from error
        return cls(files, executor, directory, opened)

    @property
    def image(self) -> MetadataImage:
        return self._publisher.image

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        return self._publisher.subscribe(callback)

    async def commit(self, changes: Sequence[Change], *, expected_version: int | None = None) -> MetadataImage:
        self._publisher.refuse_reentry()
        pending = _Pending(changes, expected_version)
        self._queue.append(pending)
        try:
            async with self._lock:
                if not pending.settled:
                    with trio.CancelScope(shield=True):
                        await self._settle_queue()
        except trio.Cancelled:
            if pending in self._queue:
                self._queue.remove(pending)
            raise
        return pending.outcome()

    async def close(self) -> None:
        """Waits for the commits under way, then notes that the store stopped in order.

        Where it can't (the disk is full), the log says so, and the next start takes this for a stop that was not.
        """
        async with self._lock:
            if self._refusal is None or self._broken:
                self._refusal = "the metadata store is closed"
                with trio.CancelScope(shield=True):
                    await self._executor.run(self._close)

    def _close(self) -> None:
        try:
            if not self._broken:
                self._files.write_atomically(f"{self._directory}/{CLEAN}", b"%d\n" % self._end)
        except OSError as error:
            logger.error("cannot note in %s that the metadata stopped in order: %s", self._directory, error)
        finally:
            self._broken = False
            self._file.close()

    async def _settle_queue(self) -> None:
        """Commits all that wait, in one write, and tells the subscribers."""
        batch, self._queue = self._queue, []
        image = self._committed
        commits: list[Sequence[Change]] = []
        for pending in batch:
            try:
                image = self._try_on(image, pending, commits)
            except (VersionConflict, InvalidChange, KafkaError) as error:
                pending.error = error
        if commits:
            try:
                await self._executor.run(self._append, self._committed.version + 1, commits)
            except Exception as error:  # whatever it is, nobody may take his commit for made
                self._fail(batch, error)
            else:
                self._committed = image
                await self._publisher.publish(image)
        for pending in batch:
            pending.settled = True
        if self._end >= self._compact_at:
            await self._compact()

    def _try_on(self, image: MetadataImage, pending: _Pending, commits: list[Sequence[Change]]) -> MetadataImage:
        if self._refusal is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._refusal)
        if pending.expected_version is not None and pending.expected_version != image.version:
            raise VersionConflict(pending.expected_version, image.version)
        if pending.changes:
            image = apply(image, pending.changes)
            commits.append(pending.changes)
        pending.image = image
        return image

    def _fail(self, batch: Sequence[_Pending], error: Exception) -> None:
        fault, reason = (None, error.strerror) if isinstance(error, OSError) else (error, None)
        message = f"cannot write the metadata to {self._path}: {reason or error}"
        logger.error("%s", message, exc_info=fault)
        for pending in batch:
            if pending.error is None:
                pending.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        if self._broken:
            self._refusal = message

    def _append(self, version: int, commits: Sequence[Sequence[Change]]) -> None:
        """In a worker thread. A failed write is taken back; where that fails too, the file is not written again."""
        if not self._files.exists(self._path):  # a file without a name takes writes, and nobody reads them
            raise FileNotFoundError(errno.ENOENT, "the journal was removed", self._path)
        line = commits_line(version, commits)
        try:
            self._file.pwrite([line], self._end)
            self._file.sync()
        except OSError:
            try:
                self._file.truncate(self._end)
                self._file.sync()
            except OSError:
                self._broken = True
            raise
        self._end += len(line)

    async def _compact(self) -> None:
        try:
            await self._executor.run(self._begin_anew, self._committed)
        except OSError as error:
            logger.warning("cannot shorten %s: %s", self._path, error.strerror or error)
            if self._broken:
                self._refusal = f"cannot write the metadata to {self._path}: {error.strerror or error}"
        self._compact_at = max(COMPACT_BYTES, COMPACT_FACTOR * self._end)

    def _begin_anew(self, image: MetadataImage) -> None:
        """In a worker thread. Nothing may go to the old file once a new one has its name, or may have after a crash."""
        line = image_line(image)
        try:
            self._files.write_atomically(self._path, line)
        except OSError:
            self._broken = True  # unless the old file still has its name
            self._broken = self._files.read(self._path)[: len(line)] == line
            raise
        self._broken = True
        file = self._files.open(self._path)
        self._broken = False
        self._file.close()
        self._file = file
        self._end = len(line)


class _Opened:
    """A journal ready to be appended to."""

    __slots__ = ("end", "file", "image")

    def __init__(self, file: File, end: int, image: MetadataImage) -> None:
        self.file = file
        self.end = end
        self.image = image


def _open(files: FileSystem, directory: str, new_cluster_id: str) -> _Opened:
    path, mark = f"{directory}/{JOURNAL}", f"{directory}/{CLEAN}"
    if not files.exists(path):
        if files.exists(f"{directory}/{CLUSTER_METADATA_DIR}"):  # its logs would be set aside, as nobody's
            raise StoreError(f"{directory} is a data directory of Apache Kafka: kwire import takes it over")
        image = MetadataImage(cluster_id=new_cluster_id)
        line = image_line(image)
        files.write_atomically(path, line)
        return _Opened(files.open(path), len(line), image)
    data = files.read(path)
    in_order = was_closed_in_order(files, directory, data)
    read = replay(path, data, closed_in_order=in_order)
    image, end = read.image, read.end
    file = files.open(path)
    if end < len(data):
        logger.warning("%s: cut off %d bytes of an interrupted write at byte %d", path, len(data) - end, end)
        file.truncate(end)
        file.sync()
    if files.exists(mark):
        files.remove(mark)
        files.sync_dir(directory)
    if not in_order and image.topics:
        changes = [LeaderEpochsBumped()]
        line = commits_line(image.version + 1, [changes])
        file.pwrite([line], end)
        file.sync()
        image, end = apply(image, changes), end + len(line)
    return _Opened(file, end, image)
