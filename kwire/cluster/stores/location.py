"""In which log dir the metadata are: in the first one, and nowhere else; or whether they may begin there.

Looked at before anything is opened or written, since a new cluster in a log dir of another one would set aside what
lies there, and a start that is refused is to leave the log dirs as they are. A journal to which nothing was ever
committed counts for none: it is what a first start leaves that did not come far.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.cluster.stores.journal import JOURNAL, StoreError, is_begun, replay
from kwire.metadata.image import MetadataImage
from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.log_dir import LogDir

_ANEW = "kwire import takes over the data of Apache Kafka; to begin anew, empty the log dirs, or give others"


def check_location(files: FileSystem, log_dirs: Sequence[LogDir]) -> None:
    """Raises StoreError, with one line that says what to do, where a store must not be opened in the first log dir.

    For a worker thread. The dirs are locked, and their identity is read.
    """
    first = log_dirs[0]
    if not first.online:
        raise StoreError(f"the first log dir holds the metadata and can't be used: {first.offline_reason}")
    readable = [log_dir for log_dir in log_dirs if log_dir.online]
    try:
        found = [log_dir for log_dir in readable if _has_metadata(files, log_dir)]
        if found:
            _check_found(files, first, found)
        else:
            _check_new(files, log_dirs, readable)
    except OSError as error:
        raise StoreError(f"cannot look for the metadata in the log dirs: {error}") from error


def _has_metadata(files: FileSystem, log_dir: LogDir) -> bool:
    path = log_dir.file(JOURNAL)
    if not files.exists(path):
        return False
    try:
        return is_begun(path, files.read(path))
    except StoreError:
        return True  # damaged


def _check_found(files: FileSystem, first: LogDir, found: Sequence[LogDir]) -> None:
    if len(found) > 1:
        where = " and ".join(f"{log_dir.path} ({_described(files, log_dir)})" for log_dir in found)
        raise StoreError(
            f"there is metadata in {where}: say which is meant by moving {JOURNAL} of the other out of the log dirs; "
            "the one that is meant comes first in log.dirs"
        )
    if found != [first]:
        raise StoreError(f"the metadata is in {found[0].path}: it must come first in log.dirs, where {first.path} is")
    if first.is_new:
        image = _image(files, first)
        raise StoreError(
            f"{first.file(layout.META_PROPERTIES)} is missing, though {JOURNAL} is there: put it back, from a backup "
            f"or with the three lines version=1, cluster.id={image.cluster_id} and node.id="
            f"{' or '.join(map(str, sorted(image.brokers)))}"
        )


def _check_new(files: FileSystem, log_dirs: Sequence[LogDir], readable: Sequence[LogDir]) -> None:
    first = log_dirs[0]
    if files.exists(first.file(layout.CLUSTER_METADATA_DIR)):
        return  # the store says what that is
    none = f"there is no metadata in {first.path}, which comes first in log.dirs"
    if not first.is_new and not files.exists(first.file(JOURNAL)):
        raise StoreError(
            f"{none}, though that belongs to a cluster: is the log dir that has {JOURNAL} missing in log.dirs, or its "
            f"volume not mounted? ({_ANEW})"
        )
    others = [log_dir.path for log_dir in readable if not log_dir.is_new]
    unread = [log_dir.path for log_dir in log_dirs if not log_dir.online]
    if unread or (first.is_new and others):
        why = f"{', '.join(unread)} can't be read" if unread else f"{', '.join(others)} belong to a cluster"
        raise StoreError(f"{none}, and {why}: is the volume of {first.path} mounted? ({_ANEW})")
    logs = {log_dir.path: count for log_dir in readable if (count := _count_logs(files, log_dir))}
    if logs:
        raise StoreError(
            f"{none}, and there are logs of {sum(logs.values())} partitions in {', '.join(logs)}, which would be set "
            f"aside: is the volume of {first.path} mounted? ({_ANEW})"
        )


def _count_logs(files: FileSystem, log_dir: LogDir) -> int:
    return sum(_is_log(files, log_dir, name) for name in files.list(log_dir.path))


def _is_log(files: FileSystem, log_dir: LogDir, name: str) -> bool:
    parsed = layout.parse_partition_dir(name)
    if parsed is None or parsed.suffix not in ("", layout.FUTURE_DIR):
        return False
    try:
        files.list(log_dir.file(name))
    except NotADirectoryError:
        return False
    return True


def _described(files: FileSystem, log_dir: LogDir) -> str:
    try:
        image = _image(files, log_dir)
    except StoreError:
        return "damaged"
    return f"version {image.version}, {len(image.topics)} topics"


def _image(files: FileSystem, log_dir: LogDir) -> MetadataImage:
    path = log_dir.file(JOURNAL)
    return replay(path, files.read(path), closed_in_order=False).image
