"""How much of the partitions lies in remote storage, by the records of `__remote_log_metadata` in log dirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import crc_matches
from kwire.protocol.records.record import iter_records
from kwire.storage import layout
from kwire.storage.inspection.batches import NoBatch, batches
from kwire.storage.tiered.account import RemoteAccount
from kwire.storage.tiered.remote_segment import SegmentState

REMOTE = "remote"
"""The tier of what lies in an object store."""


class RemoteSize(NamedTuple):
    """What there is of one partition; a segment that was copied twice counts twice, as it takes room twice."""

    topic: str
    partition: int
    segments: int
    log_bytes: int


def remote_sizes(files: FileSystem, log_dirs: Iterable[str]) -> list[RemoteSize]:
    """Those of all partitions whose records lie in these dirs, as far as they can be read."""
    account = RemoteAccount()
    for log_dir in log_dirs:
        for name in files.list(log_dir):
            parsed = layout.parse_partition_dir(name)
            if parsed is not None and not parsed.suffix and parsed.topic == REMOTE_LOG_METADATA:
                with suppress(NoBatch, CorruptBatchError):
                    for value in _records(files, f"{log_dir}/{name}"):
                        with suppress(ValueError):  # a record that brokers pass over, too
                            account.take_up(value)
    return sizes_of(account)


def sizes_of(account: RemoteAccount) -> list[RemoteSize]:
    """The same by records from wherever: of the copies that are finished and not being deleted."""
    found = []
    for of, segments in account.partitions.items():
        sizes = [segment.size for segment in segments if segment.state is SegmentState.COPY_SEGMENT_FINISHED]
        if sizes:
            found.append(RemoteSize(of.topic, of.partition, len(sizes), sum(sizes)))
    return sorted(found)


def _records(files: FileSystem, folder: str) -> Iterator[bytes]:
    """The values up to the first batch that cannot be read: it is being written, or `kwire log verify` tells of it."""
    for name in files.list(folder):
        if name.endswith(layout.LOG):
            with open_input(f"{folder}/{name}") as file:
                for _, header, batch in batches(file, files.file_size(f"{folder}/{name}")):
                    if not crc_matches(header, batch):
                        return
                    for record in () if header.control else iter_records(bytes(batch)):
                        yield bytes(record.value or b"")
