"""One log dir: its identity, its lock, its checkpoints, and whether it can be used.

A dir that failed once (an OSError in any access: a full or broken disk) is offline until the broker restarts. Its
partitions answer KAFKA_STORAGE_ERROR; those of the other dirs go on.
"""

from __future__ import annotations

import errno
import logging
import posixpath
from collections.abc import Callable, Collection, Mapping

import trio

from kwire.ports.files import FileLock, FileSystem
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition
from kwire.storage.early_writing import EarlyWriting
from kwire.storage.high_watermarks import HighWatermarks
from kwire.storage.room import Room

logger = logging.getLogger(__name__)

_META_VERSION = "1"

_REPAIR = "repair it, or take it out of log.dirs, and restart the broker"
_ADVICE: dict[int | None, str] = {
    errno.ENOSPC: "make room on its volume, and restart the broker",
    errno.EDQUOT: "raise the quota on its volume, and restart the broker",
    errno.EROFS: "see why its volume is read-only, mount it for writing, and restart the broker",
    errno.EACCES: "let the broker read and write it, and restart the broker",
    errno.EMFILE: "raise the limit of open files (ulimit -n), and restart the broker",
}
"""What an administrator can do about it."""


class LogDirError(Exception):
    """A log dir that this broker must not or cannot use; the message says what to do."""


class LogDir:
    """A log dir. Everything but `fail` may block, and is for a worker thread or for the start."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.files = files
        self.path = path
        self.id: bytes = uuids.ZERO
        """The directory id of meta.properties, once `prepare` has run."""
        self.is_new = False
        """Whether it had no identity at this start: it was added to log.dirs, or what was there is not mounted."""
        self.offline_reason: str | None = None
        self.on_offline: Callable[[LogDir, str], None] | None = None
        """Called with why, and is to tell of it."""
        self.writing = trio.Lock()
        """Held from deciding what a checkpoint is to say until it says so: two writers would take each other's file
        away, and the one with the older content might be the last."""
        self.high_watermarks = HighWatermarks()
        """What their checkpoint says; `checkpoint` and what else takes a checkpoint's name do not know of it."""
        self.early_writing = EarlyWriting()
        self.room: Room | None = None
        """What may still be written; None: that is not looked at."""
        self.loaded = False
        """Whether all logs are loaded: from then on the files say what this broker did, before that what was left."""
        self._clean_shutdown: bytes | None = None
        self._lock: FileLock | None = None
        self._content: dict[str, Mapping[TopicPartition, int]] = {}

    def __repr__(self) -> str:
        return f"LogDir({self.path!r})"

    @property
    def online(self) -> bool:
        return self.offline_reason is None

    def fail(self, what: str, error: Exception) -> KafkaError:
        """Takes the dir offline; returns the error to raise."""
        message = f"{what} in log dir {self.path}: {error}"
        if self.offline_reason is None:
            number = error.errno if isinstance(error, OSError) else None
            self.offline_reason = f"{message}; {_ADVICE.get(number, _REPAIR)}"
            if self.on_offline is not None:
                self.on_offline(self, f"{what}: {error}; {_ADVICE.get(number, _REPAIR)}")
            else:
                logger.error("log dir %s is offline until the broker restarts: %s: %s", self.path, what, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def check_online(self) -> None:
        """Raises KAFKA_STORAGE_ERROR where the dir is offline."""
        if self.offline_reason is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.offline_reason)

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    # Identity

    def lock(self) -> None:
        """Creates the dir if missing and takes its lock. Raises LogDirError where another broker has it."""
        try:
            self._make()
            self._lock = self.files.lock(self.file(layout.LOCK))
        except BlockingIOError as error:
            raise LogDirError(
                f"log dir {self.path} is in use by another broker (it holds {layout.LOCK}): "
                f"stop that one or give this one a dir of its own (log.dirs)"
            ) from error

    def _make(self) -> None:
        """Creates the dir if missing, so that a power cut does not take it, and all that is in it, away again."""
        made = []
        path = self.path
        while path and not self.files.exists(path):
            made.append(path)
            path = posixpath.dirname(path)
        self.files.make_dirs(self.path)
        for folder in made:
            self.files.sync_dir(posixpath.dirname(folder) or ".")

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def read_identity(self) -> dict[str, str]:
        """meta.properties; empty where the dir is new. Raises LogDirError where it is not of version 1."""
        if self.files.exists(self.file(layout.UNFINISHED_IMPORT)):
            raise LogDirError(f"{self.path} holds a part of an import that was interrupted: run the kwire import again")
        path = self.file(layout.META_PROPERTIES)
        self.is_new = not self.files.exists(path)
        if self.is_new:
            return {}
        try:
            properties = checkpoints.decode_meta_properties(self.files.read(path))
        except CorruptCheckpoint as error:
            raise LogDirError(f"{path} cannot be read: {error}") from error
        if properties.get("version") != _META_VERSION:
            raise LogDirError(f"{path} is of version {properties.get('version')}, and only {_META_VERSION} is known")
        return properties

    def identify(self, cluster_id: str, node_id: int, new_id: Callable[[], bytes]) -> None:
        """Checks that the dir belongs to this broker of this cluster, or makes it so where it is new.

        Raises LogDirError where it belongs to another.
        """
        properties = self.read_identity()
        path = self.file(layout.META_PROPERTIES)
        expected = {"cluster.id": cluster_id, "node.id": str(node_id)}
        for key, value in expected.items():
            if properties.get(key, value) != value:
                raise LogDirError(
                    f"{path} says {key}={properties[key]}, but this broker has {key}={value}: "
                    f"the dir belongs to another broker or cluster"
                )
        wanted = {"version": _META_VERSION, "directory.id": uuids.to_text(new_id()), **properties, **expected}
        try:
            self.id = uuids.from_text(wanted["directory.id"])
        except ValueError as error:
            raise LogDirError(f"{path} has an invalid directory.id: {wanted['directory.id']!r}") from error
        if wanted != properties:
            self.files.write_atomically(path, checkpoints.encode_meta_properties(wanted))

    # The marker of a clean stop

    def take_clean_shutdown(self) -> bool:
        """Sets the marker of a clean stop aside, under a name of kwire's own; whether there was one."""
        path = self.file(layout.CLEAN_SHUTDOWN)
        if not self.files.exists(path):
            return False
        self._clean_shutdown = self.files.read(path)
        self.files.rename(path, self.file(layout.LAST_CLEAN_SHUTDOWN))
        self.files.sync_dir(self.path)
        return True

    def stopped_ms(self) -> int:
        """When the dir was last stopped cleanly, by the time of that marker's file; 0 where it is not known."""
        return self.written_ms(layout.LAST_CLEAN_SHUTDOWN)

    def written_ms(self, name: str) -> int:
        """When a file of the dir was last written (ms); 0 where it is missing."""
        path = self.file(name)
        return self.files.modified_ms(path) if self.files.exists(path) else 0

    def forget_clean_shutdown(self) -> None:
        """From now on logs are not only appended to: that one ends where it was flushed to does not say any more that
        it is as it was then (see `kwire.storage.recovery`)."""
        path = self.file(layout.LAST_CLEAN_SHUTDOWN)
        if self.files.exists(path):
            self.files.remove(path)
            self.files.sync_dir(self.path)

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        self.files.write_atomically(self.file(layout.CLEAN_SHUTDOWN), checkpoints.encode_clean_shutdown(broker_epoch))

    def put_back_clean_shutdown(self) -> None:
        """Leaves the dir as it was found: what was not loaded is as clean as it was."""
        if self._clean_shutdown is not None:
            self.files.write_atomically(self.file(layout.CLEAN_SHUTDOWN), self._clean_shutdown)

    # Checkpoints

    def read_checkpoint(self, name: str, known: Mapping[str, TopicPartition]) -> dict[TopicPartition, int]:
        """Empty where the file is missing or cannot be understood, which costs a longer recovery and no data.

        `known`: see `checkpoints.decode_offsets`.
        """
        offsets = self._offsets_in(name, known)
        if offsets is None:
            return {}
        self._content[name] = offsets
        return offsets

    def read_high_watermarks(self, known: Mapping[str, TopicPartition]) -> dict[TopicPartition, int]:
        """As `read_checkpoint`."""
        offsets = self._offsets_in(layout.HIGH_WATERMARKS, known)
        if offsets is None:
            return {}
        self.high_watermarks.begin(offsets)
        return offsets

    def _offsets_in(self, name: str, known: Mapping[str, TopicPartition]) -> dict[TopicPartition, int] | None:
        path = self.file(name)
        if not self.files.exists(path):
            return None
        try:
            return checkpoints.decode_offsets(self.files.read(path), known)
        except CorruptCheckpoint as error:
            logger.warning("ignoring %s: %s", path, error)
            return None

    def checkpoint(self, name: str) -> Mapping[TopicPartition, int]:
        """What the checkpoint says. For the event loop: what was read or written is remembered."""
        return self._content.get(name, {})

    def says(self, name: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether the checkpoint has just this content. For the event loop."""
        return self._content.get(name) == offsets

    def mentions(self, name: str, partitions: Collection[TopicPartition]) -> bool:
        """Whether the checkpoint speaks of one of the partitions. For the event loop."""
        return not self.checkpoint(name).keys().isdisjoint(partitions)

    def lower_checkpoint(self, name: str, partition: TopicPartition, offset: int) -> None:
        """Sees to it that the checkpoint says no more than `offset` of a partition."""
        known = self.checkpoint(name)
        if known.get(partition, 0) > offset:
            self.write_checkpoint(name, {**known, partition: offset})

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.files.write_atomically(self.file(name), checkpoints.encode_offsets(offsets))
        self._content[name] = offsets

    def write_high_watermarks(self, data: bytes) -> None:
        """`data`: the whole file (`HighWatermarks.encoded`)."""
        self.files.write_atomically(self.file(layout.HIGH_WATERMARKS), data)
