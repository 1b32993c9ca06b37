"""A log dir of an Apache Kafka broker: whose it is, how it was left, which partitions lie in it. Only read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.stores.journal import JOURNAL
from kwire.ports.files import FileSystem
from kwire.ports.real_files import in_use
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition


@dataclass(slots=True)
class SourceDir:
    """One log dir."""

    path: str
    cluster_id: str
    node_id: int
    id: bytes
    """The directory id; zeros in a dir from before there were any."""
    clean: bool
    """Whether it was left by a clean stop."""
    has_metadata: bool
    partitions: dict[TopicPartition, bytes | None] = field(default_factory=dict)
    """The topic id that each live partition's folder says."""
    others: list[str] = field(default_factory=list)
    """Folders of partitions that are not live: deleted, set aside, on their way from another dir."""
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    """What each of layout.OFFSET_CHECKPOINTS says."""

    def folder(self, key: TopicPartition) -> str:
        return f"{self.path}/{layout.partition_dir_name(*key)}"

    def offset(self, checkpoint: str, key: TopicPartition) -> int | None:
        return self.offsets.get(checkpoint, {}).get(key)


def read_source(files: FileSystem, path: str) -> SourceDir:
    """Raises AdoptionError where it is no such dir, or a broker is at work in it; OSError."""
    meta = _identity(files, path)
    if in_use(f"{path}/{layout.LOCK}"):
        raise AdoptionError(f"{path} is in use by a broker: stop it first")
    names = files.list(path)
    source = SourceDir(
        path,
        meta["cluster.id"],
        int(meta["node.id"]),
        uuids.from_text(meta["directory.id"]) if "directory.id" in meta else uuids.ZERO,
        layout.CLEAN_SHUTDOWN in names,
        layout.CLUSTER_METADATA_DIR in names,
    )
    for name in names:
        parsed = layout.parse_partition_dir(name)
        if parsed is None or name == layout.CLUSTER_METADATA_DIR:
            continue
        if parsed.suffix:
            source.others.append(name)
        else:
            source.partitions[parsed.topic, parsed.partition] = _topic_id(files, f"{path}/{name}")
    for name in layout.OFFSET_CHECKPOINTS:
        if name in names:
            try:
                source.offsets[name] = checkpoints.decode_offsets(files.read(f"{path}/{name}"))
            except CorruptCheckpoint as error:
                raise AdoptionError(f"{path}/{name}: {error}") from None
    return source


def lock_dir(files: FileSystem, path: str, locks: ExitStack) -> None:
    """Keeps a broker from starting there meanwhile, where that needs no change in the dir. Raises AdoptionError."""
    if files.exists(f"{path}/{layout.LOCK}"):
        try:
            locks.callback(files.lock(f"{path}/{layout.LOCK}").release)
        except BlockingIOError:
            raise AdoptionError(f"{path} is in use by a broker: stop it first") from None
        except OSError:
            return  # read-only: nobody else writes there either


def _identity(files: FileSystem, path: str) -> dict[str, str]:
    file = f"{path}/{layout.META_PROPERTIES}"
    if not files.exists(file):
        raise AdoptionError(f"{path} is no data directory of Apache Kafka: {layout.META_PROPERTIES} is missing")
    try:
        meta = checkpoints.decode_meta_properties(files.read(file))
    except CorruptCheckpoint as error:
        raise AdoptionError(f"{file}: {error}") from None
    if meta.get("version") != "1" or "cluster.id" not in meta or not meta.get("node.id", "").isdigit():
        raise AdoptionError(f"{file} is not of version 1: only brokers without ZooKeeper (KRaft) can be taken over")
    if files.exists(f"{path}/{JOURNAL}"):
        raise AdoptionError(f"{path} is kwire's own already: serve it with kwire serve --data-dir {path}")
    try:
        uuids.from_text(meta.get("directory.id", "A" * 22))
    except ValueError:
        raise AdoptionError(f"{file}: {meta['directory.id']!r} is no directory id") from None
    return meta


def _topic_id(files: FileSystem, folder: str) -> bytes | None:
    """None where the file is missing, which no Apache Kafka of KRaft leaves out but by a crash."""
    file = f"{folder}/{layout.PARTITION_METADATA}"
    if not files.exists(file):
        return None
    try:
        return uuids.from_text(checkpoints.decode_partition_metadata(files.read(file)))
    except (CorruptCheckpoint, ValueError) as error:
        raise AdoptionError(f"{file}: {error}") from None
