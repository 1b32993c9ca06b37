"""A log dir, looked through: how it was left, its checkpoints, its partitions. A partition's folder alone, too."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from kwire.ports.files import FileSystem
from kwire.ports.real_files import in_use
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition
from kwire.storage.inspection.fault import Findings
from kwire.storage.inspection.partition import Expected, PartitionInspection


@dataclass(slots=True)
class Inspected:
    """What is to be looked through: partitions' folders, each with what its log dir says of it."""

    log_dirs: list[str] = field(default_factory=list)
    """Those that are wholly looked through."""
    in_use: list[str] = field(default_factory=list)
    """Log dirs that a broker is at work in."""
    unclean: list[str] = field(default_factory=list)
    """Log dirs that were not left by a clean stop."""
    folders: list[tuple[str, Expected]] = field(default_factory=list)
    bytes: int = 0
    """Of all segments."""


def find(files: FileSystem, paths: list[str], findings: Findings) -> Inspected:
    """Goes through log dirs and partitions' folders for what there is. Raises OSError, FileNotFoundError.

    Finds faults in checkpoints, and folders that belong to no partition.
    """
    found = Inspected()
    for path in paths:
        names = files.list(path)
        parsed = layout.parse_partition_dir(path.rpartition("/")[2])
        if parsed is not None and any(name.endswith(layout.LOG) for name in names):
            state = _State.read(files, path.rpartition("/")[0] or ".", found, Findings(lambda fault: None))
            found.folders.append((path, state.expected((parsed.topic, parsed.partition))))
            continue
        found.log_dirs.append(path)
        state = _State.read(files, path, found, findings)
        partitions = dict(_partitions(path, names, findings))
        found.folders.extend((folder, state.expected(key)) for key, folder in partitions.items())
        for name, offsets in state.offsets.items():
            for topic, partition in offsets.keys() - partitions.keys():
                text = f"it speaks of {topic}-{partition}, which is not there"
                findings.note(f"{path}/{name}", None, text)
    for item in list(found.folders):
        folder = item[0]
        try:
            found.bytes += sum(files.file_size(f"{folder}/{name}") for name in files.list(folder) if _is_log(name))
        except FileNotFoundError:  # a broker is at work: it is for a bar only
            continue
        except NotADirectoryError:
            findings.note(folder, None, "not a folder, though its name is that of a partition's")
            found.folders.remove(item)
    return found


def inspect(
    files: FileSystem, found: Inspected, findings: Findings, *, deep: bool, compacted: Collection[str] = ()
) -> None:
    """Looks through all that was found. `deep`: every record too. `compacted`: topics whose configs say so."""
    for folder, expected in found.folders:
        parsed = layout.parse_partition_dir(folder.rpartition("/")[2])
        if parsed is not None and parsed.topic in compacted:
            expected = replace(expected, compacted=True)
        try:
            PartitionInspection(files, folder, expected, findings, deep=deep).run()
        except FileNotFoundError as error:
            if not found.in_use:
                raise
            findings.note(error.filename or folder, None, "it went away meanwhile")


class _State:
    """How a log dir was left, and what its checkpoints say."""

    def __init__(self, offsets: dict[str, dict[TopicPartition, int]], *, clean: bool, busy: bool) -> None:
        self.offsets = offsets
        self._clean = clean
        self._busy = busy

    @classmethod
    def read(cls, files: FileSystem, path: str, found: Inspected, findings: Findings) -> _State:
        offsets = {}
        for name in layout.OFFSET_CHECKPOINTS:
            if files.exists(f"{path}/{name}"):
                try:
                    offsets[name] = checkpoints.decode_offsets(files.read(f"{path}/{name}"))
                except CorruptCheckpoint as error:
                    findings.fault(f"{path}/{name}", None, str(error))
        if not files.exists(f"{path}/{layout.META_PROPERTIES}"):
            return cls(offsets, clean=True, busy=False)
        try:
            checkpoints.decode_meta_properties(files.read(f"{path}/{layout.META_PROPERTIES}"))
        except CorruptCheckpoint as error:
            findings.fault(f"{path}/{layout.META_PROPERTIES}", None, str(error))
        busy = in_use(f"{path}/{layout.LOCK}")
        clean = files.exists(f"{path}/{layout.CLEAN_SHUTDOWN}")
        if busy and path not in found.in_use:
            found.in_use.append(path)
        if not busy and not clean and path not in found.unclean:
            found.unclean.append(path)
        return cls(offsets, clean=clean, busy=busy)

    def expected(self, key: TopicPartition) -> Expected:
        recovery_point, log_start, high_watermark, cleaned = (
            self.offsets.get(name, {}).get(key) for name in layout.OFFSET_CHECKPOINTS
        )
        trusted_to = None if self._clean else recovery_point or 0
        if self._busy or key == ("__cluster_metadata", 0):  # a controller goes through its log at every start
            trusted_to = 0
        compacted = cleaned is not None or key[0] in _COMPACTED
        return Expected(trusted_to, recovery_point, log_start, high_watermark, compacted, self._busy)


def _partitions(path: str, names: list[str], findings: Findings) -> Iterator[tuple[TopicPartition, str]]:
    for name in names:
        parsed = layout.parse_partition_dir(name)
        if parsed is None:
            continue
        if parsed.suffix:
            findings.note(f"{path}/{name}", None, _SET_ASIDE[parsed.suffix])
        else:
            yield (parsed.topic, parsed.partition), f"{path}/{name}"


def _is_log(name: str) -> bool:
    parsed = layout.parse_segment_name(name)
    return parsed is not None and parsed[1] == layout.LOG


_COMPACTED = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
_SET_ASIDE = {
    layout.DELETE_DIR: "a deleted partition: the next start removes it",
    layout.STRAY_DIR: "set aside, since the cluster knew this partition no more",
    layout.FUTURE_DIR: "a replica on its way from another log dir",
}
