"""The way back: topics of a kwire that is stopped, put into an Apache Kafka that is stopped, where they were created.

A partition's folder is copied there with the topic's id of that cluster. Two things would do harm in it and are changed
on the way, neither of which a batch's CRC covers:

- Each batch says in which leader epoch it was written. Those of another cluster may be higher than any of this one,
  and clients would take its metadata for old. So all batches are of epoch 0, the first of a topic.
- The producers' snapshots name producers by ids that this cluster may give to others, whose batches it would then take
  for repeated ones. They stay behind: the log of a broker that stopped cleanly has none, and begins without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.epochs import is_copy_in_first_epoch, set_first_epoch
from kwire.cluster.adoption.plan import check_sources
from kwire.cluster.adoption.source import SourceDir, lock_dir
from kwire.cluster.adoption.state import KraftState, KraftTopic
from kwire.cluster.stores.journal import JOURNAL, StoreError, replay
from kwire.metadata.image import MetadataImage, TopicImage
from kwire.ports.copying import copy_file
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition
from kwire.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot

_FULL = "{} has records already: it must be as it was created"


class Return(NamedTuple):
    """One partition on its way back."""

    key: TopicPartition
    topic_id: bytes
    """In Apache Kafka."""
    source: str
    """kwire's folder."""
    target: SourceDir
    names: list[str]
    """The files that come along."""
    bytes: int
    offsets: dict[str, int]
    """What the checkpoints are to say."""
    there: bool
    """It is there already: an export that was interrupted has come so far."""


def plan_return(
    files: FileSystem, data_dirs: Sequence[str], topics: Sequence[str], targets: list[SourceDir], state: KraftState
) -> list[Return]:
    """`data_dirs` are all of kwire's. Touches nothing.

    Raises AdoptionError where one of both was not stopped cleanly, or a topic is not there, has other partitions, has
    records already, replicas elsewhere, or an open transaction.
    """
    image = _read_image(files, data_dirs)
    check_sources(targets)
    for target in targets:
        if not target.clean:
            raise AdoptionError(f"{target.path} was not left by a clean stop: start Apache Kafka there, and stop it")
    offsets = _offsets(files, data_dirs)
    by_name = {topic.name: topic for topic in state.topics.values()}
    returns = []
    for name in topics:
        ours, theirs = image.topics.get(name), by_name.get(name)
        if ours is None:
            raise AdoptionError(f"kwire has no topic {name}")
        if theirs is None or len(theirs.partitions) != len(ours.partitions):
            raise AdoptionError(_creation(ours, image.config("topic", name), theirs))
        if image.config("topic", name).get("remote.storage.enable") == "true":
            raise AdoptionError(f"topic {name} is tiered: what lies in the object store alone would stay behind")
        for number in range(len(ours.partitions)):
            returns.append(_return(files, data_dirs, targets, theirs, number, offsets))
    return returns


def put_back(
    files: FileSystem,
    data_dirs: Sequence[str],
    returns: Sequence[Return],
    new_id: Callable[[], bytes],
    advance: Callable[[int], None],
) -> None:
    """Raises AdoptionError where a broker has been started meanwhile, OSError.

    Then it can be run again, with a new plan: partitions that are there already are told by what is in them.
    """
    with ExitStack() as locks:
        for path in {*data_dirs, *(each.target.path for each in returns)}:
            lock_dir(files, path, locks)
        missing = [each for each in returns if not each.there]
        staged = [_stage(files, each, new_id(), advance) for each in missing]
        _sync(files, returns)
        _write_checkpoints(files, missing)
        for each, folder in zip(missing, staged, strict=True):
            _put_in_place(files, each, folder)
        _sync(files, returns)


def _stage(files: FileSystem, each: Return, unique: bytes, advance: Callable[[int], None]) -> str:
    """A folder with a name that Apache Kafka would remove at its next start: it is not whole yet."""
    staged = f"{each.target.path}/{layout.renamed_dir_name(*each.key, unique, layout.DELETE_DIR)}"
    files.make_dirs(staged)
    first_offset = None
    for name in each.names:
        copy_file(f"{each.source}/{name}", f"{staged}/{name}", advance)
        if name.endswith(layout.LOG):
            begins = set_first_epoch(files, f"{staged}/{name}")
            first_offset = begins if first_offset is None else first_offset
    epochs = [] if first_offset is None else [(0, first_offset)]
    files.write(f"{staged}/{layout.LEADER_EPOCHS}", checkpoints.encode_epochs(epochs))
    topic_id = checkpoints.encode_partition_metadata(uuids.to_text(each.topic_id))
    files.write(f"{staged}/{layout.PARTITION_METADATA}", topic_id)
    return staged


def _write_checkpoints(files: FileSystem, returns: Sequence[Return]) -> None:
    changed = {}
    for each in returns:
        for name, offset in each.offsets.items():
            said = each.target.offsets.setdefault(name, {})
            said[each.key] = offset
            changed[f"{each.target.path}/{name}"] = said
    for path, offsets in changed.items():
        files.write_atomically(path, checkpoints.encode_offsets(offsets))


def _put_in_place(files: FileSystem, each: Return, staged: str) -> None:
    folder = each.target.folder(each.key)
    if files.exists(folder):
        if _has_records(files, folder):
            raise AdoptionError(_FULL.format(folder))
        files.remove_tree(folder)
    files.rename(staged, folder)


def _sync(files: FileSystem, returns: Sequence[Return]) -> None:
    for path in {each.target.path for each in returns}:
        files.sync_volume(path)


# What is there


def _read_image(files: FileSystem, data_dirs: Sequence[str]) -> MetadataImage:
    for path in data_dirs:
        if not files.exists(f"{path}/{layout.CLEAN_SHUTDOWN}"):
            raise AdoptionError(f"{path} was not left by a clean stop of kwire: start it there, and stop it")
    journal = f"{data_dirs[0]}/{JOURNAL}"
    if not files.exists(journal):
        raise AdoptionError(f"{journal} is missing: name kwire's data dirs in the order in which it serves them")
    try:
        return replay(journal, files.read(journal), closed_in_order=False).image
    except StoreError as error:
        raise AdoptionError(str(error)) from None


def _offsets(files: FileSystem, data_dirs: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    found: dict[str, dict[TopicPartition, int]] = {name: {} for name in layout.OFFSET_CHECKPOINTS}
    for path in data_dirs:
        for name in layout.OFFSET_CHECKPOINTS:
            if files.exists(f"{path}/{name}"):
                try:
                    found[name] |= checkpoints.decode_offsets(files.read(f"{path}/{name}"))
                except CorruptCheckpoint as error:
                    raise AdoptionError(
                        f"{path}/{name}: {error}: start kwire there, and stop it, to have it written anew"
                    ) from None
    return found


def _return(
    files: FileSystem,
    data_dirs: Sequence[str],
    targets: Sequence[SourceDir],
    topic: KraftTopic,
    number: int,
    offsets: dict[str, dict[TopicPartition, int]],
) -> Return:
    key = topic.name, number
    target = _target_of(files, targets, topic, number)
    folders = [f"{path}/{layout.partition_dir_name(*key)}" for path in data_dirs]
    source = next((folder for folder in folders if files.exists(folder)), None)
    if source is None:
        raise AdoptionError(f"{topic.name}-{number} is in none of {', '.join(data_dirs)}")
    names = files.list(source)
    _refuse_open_transactions(files, source, names)
    carried = [
        name for name in names if (parsed := layout.parse_segment_name(name)) and parsed[1] in layout.SEGMENT_SUFFIXES
    ]
    size = sum(files.file_size(f"{source}/{name}") for name in carried)
    said = {name: offsets[name][key] for name in layout.OFFSET_CHECKPOINTS if key in offsets[name]}
    there = _is_there(files, target, key, topic.id, source, carried)
    return Return(key, topic.id, source, target, carried, size, said, there)


def _target_of(files: FileSystem, targets: Sequence[SourceDir], topic: KraftTopic, number: int) -> SourceDir:
    """The dir in which Apache Kafka has the partition, or is to have it."""
    partition, name = topic.partitions[number], f"{topic.name}-{number}"
    if partition.replicas != [targets[0].node_id]:
        brokers = ", ".join(map(str, partition.replicas))
        raise AdoptionError(f"{name} has its replicas on brokers {brokers}: it must have this one alone")
    for target in targets:
        if (topic.name, number) in target.partitions:
            return target
    for target in targets:
        if partition.directories in ([target.id], []):
            return target
    raise AdoptionError(f"{name} is in a log dir of Apache Kafka that is not given (--to)")


def _is_there(
    files: FileSystem, target: SourceDir, key: TopicPartition, topic_id: bytes, source: str, names: Sequence[str]
) -> bool:
    """Whether all that is to go there is there. Raises AdoptionError where there are other records."""
    folder = target.folder(key)
    if key not in target.partitions or not _has_records(files, folder):
        return False
    logs = [name for name in names if name.endswith(layout.LOG)]
    if (
        target.partitions[key] != topic_id
        or logs != [name for name in files.list(folder) if name.endswith(layout.LOG)]
        or not all(is_copy_in_first_epoch(files, f"{folder}/{name}", f"{source}/{name}") for name in logs)
    ):
        raise AdoptionError(_FULL.format(folder))
    return True


def _has_records(files: FileSystem, folder: str) -> bool:
    return any(files.file_size(f"{folder}/{name}") for name in files.list(folder) if name.endswith(layout.LOG))


def _refuse_open_transactions(files: FileSystem, folder: str, names: Sequence[str]) -> None:
    """Of a log without producers nobody would know that they are open, and consumers would read them."""
    snapshots = [name for name in names if name.endswith(layout.SNAPSHOT)]
    if not snapshots:
        return
    try:
        producers = decode_snapshot(files.read(f"{folder}/{max(snapshots)}"))
    except CorruptSnapshotError as error:
        raise AdoptionError(f"{folder}/{max(snapshots)}: {error}") from None
    for producer in producers:
        if producer.txn_first_offset >= 0:
            raise AdoptionError(f"{folder} has an open transaction of producer {producer.producer_id}: end it first")


def _creation(ours: TopicImage, configs: Mapping[str, str], theirs: KraftTopic | None) -> str:
    """What to do where the topic is not as it should be."""
    if theirs is not None:
        return f"topic {ours.name} has {len(theirs.partitions)} partitions there, and {len(ours.partitions)} in kwire"
    words = ["kafka-topics.sh --create", f"--topic {ours.name}", f"--partitions {len(ours.partitions)}"]
    words += [f"--config {name}={value}" for name, value in configs.items()]
    return f"topic {ours.name} is not there: create it ({' '.join(words)}), and stop Apache Kafka again"
