"""Looking through the journal of the metadata, and whether the partitions' folders are those that it knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kwire.cluster.stores.journal import JOURNAL, StoreError, replay, was_closed_in_order
from kwire.metadata.image import MetadataImage
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint
from kwire.storage.inspection.fault import Findings


def inspect_journal(
    files: FileSystem, log_dirs: Iterable[str], folders: Collection[str], findings: Findings
) -> set[str]:
    """Of the log dir that has one; `folders` are those of live partitions. Returns the topics that are compacted.

    Raises OSError.
    """
    compacted: set[str] = set()
    for log_dir in log_dirs:
        path = f"{log_dir}/{JOURNAL}"
        if files.exists(path):
            image = _read(files, log_dir, findings)
            if image is not None:
                for folder in folders:
                    _compare(files, folder, image, findings)
                compacted.update(
                    name for name in image.topics if "compact" in image.config("topic", name).get("cleanup.policy", "")
                )
    return compacted


def _read(files: FileSystem, log_dir: str, findings: Findings) -> MetadataImage | None:
    path = f"{log_dir}/{JOURNAL}"
    data = files.read(path)
    try:
        read = replay(path, data, closed_in_order=was_closed_in_order(files, log_dir, data))
    except StoreError as error:
        findings.fault(path, None, str(error).removeprefix(path).strip())
        return None
    if read.end < len(data):
        findings.note(path, read.end, "an interrupted write, or one under way: the next start cuts it off")
    return read.image


def _compare(files: FileSystem, folder: str, image: MetadataImage, findings: Findings) -> None:
    parsed = layout.parse_partition_dir(folder.rpartition("/")[2])
    assert parsed is not None
    if image.partition(parsed.topic, parsed.partition) is None:
        findings.note(folder, None, f"{JOURNAL} has no such partition: the next start sets it aside")
        return
    path = f"{folder}/{layout.PARTITION_METADATA}"
    try:
        says = checkpoints.decode_partition_metadata(files.read(path)) if files.exists(path) else None
    except CorruptCheckpoint:
        return  # a fault of the folder's own
    known = uuids.to_text(image.topics[parsed.topic].id)
    if says not in (None, known):
        findings.fault(path, None, f"it is of topic id {says}, and {JOURNAL} has topic {parsed.topic} with id {known}")
