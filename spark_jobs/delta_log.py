"""The log of a lake: which of its files count, and how far each topic is read.

It is that of Delta Lake, version 1 for readers, so that all that reads Delta (Spark, pandas, DuckDB, Polars, ...) reads
a lake too. `_delta_log/00000000000000000012.json` says what version 12 changed, an action a line:

    protocol, metaData   what a reader must know; the columns, and by which of them files lie in folders
    add, remove          files that count from now on, or no more
    txn                  how far a writer is: here the offset after the last record of each partition of a topic

A version appears as a whole, once (`os.link` refuses a name that is taken), after all that it names is on the disk. So
a crash at any moment leaves a lake as its last version says; files that no version names do not count.

Left out: checkpoints of the log. Each reader reads all versions; with a million of them, Delta itself is better.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from spark_jobs.faults import Fault

FOLDER = "_delta_log"
Action = Mapping[str, Any]
"""{"add": {...}} and the like."""


@dataclass(frozen=True)
class File:
    """A Parquet file that counts."""

    path: str
    """Below the lake."""
    values: Mapping[str, str | None]
    """Of the columns that folders are named for."""
    size: int
    """Bytes."""
    records: int

    def added(self, *, new: bool) -> Action:
        """`new` says that its records were not in the lake before."""
        return {
            "add": {
                "path": quote(self.path, safe="/="),
                "partitionValues": dict(self.values),
                "size": self.size,
                "modificationTime": now_ms(),
                "dataChange": new,
                "stats": json.dumps({"numRecords": self.records}),
            }
        }

    def removed(self) -> Action:
        """Its records stay in the lake, in other files."""
        return {"remove": {"path": quote(self.path, safe="/="), "deletionTimestamp": now_ms(), "dataChange": False}}


@dataclass
class Snapshot:
    """A lake as one version says."""

    version: int = -1
    schema: str | None = None
    """Spark's schema as JSON; None where there is no lake yet."""
    folders: tuple[str, ...] = ()
    """The columns that folders are named for."""
    files: dict[str, File] = field(default_factory=dict)
    """By their paths."""
    removed: dict[str, int] = field(default_factory=dict)
    """Files that counted once, and the milliseconds since 1970 when they last did."""
    progress: dict[str, int] = field(default_factory=dict)
    """How far each writer is."""

    def apply(self, action: Action) -> None:
        """Raises Fault where the action is beyond what this can read."""
        for kind, content in action.items():
            match kind:
                case "protocol":
                    if content["minReaderVersion"] > 1:
                        raise Fault("the lake was changed by a Delta that this job does not understand")
                case "metaData":
                    self.schema = content["schemaString"]
                    self.folders = tuple(content["partitionColumns"])
                case "add":
                    path = unquote(content["path"])
                    records = json.loads(content.get("stats") or "{}").get("numRecords", 0)
                    self.files[path] = File(path, content["partitionValues"], content["size"], records)
                    self.removed.pop(path, None)
                case "remove":
                    path = unquote(content["path"])
                    self.files.pop(path, None)
                    self.removed[path] = content["deletionTimestamp"]
                case "txn":
                    self.progress[content["appId"]] = content["version"]


class Log:
    """The log of the lake in a folder, which may be still to come."""

    def __init__(self, lake: Path) -> None:
        self._folder = lake / FOLDER
        self._last = Snapshot()

    def snapshot(self) -> Snapshot:
        """The lake as it is now; the caller leaves it as it is, and may see it change at the next call."""
        while (file := self._file(self._last.version + 1)).exists():
            for line in file.read_text().splitlines():
                self._last.apply(json.loads(line))
            self._last.version += 1
        if self._last.version < 0 and any(self._folder.glob("*.json")):
            raise Fault(f"{self._folder} lacks its first versions: the lake was cleaned by another program")
        return self._last

    def commit(self, operation: str, changes: Callable[[Snapshot], Iterable[Action]]) -> None:
        """Makes a new version of what `changes` gives for the last one; it is asked again if another writer was faster.

        No version is made where it gives nothing.
        """
        while actions := list(changes(self.snapshot())):
            info = {"commitInfo": {"timestamp": now_ms(), "operation": operation, "engineInfo": "kwire spark_jobs"}}
            if self._write(self._last.version + 1, [info, *actions]):
                return

    def _write(self, version: int, actions: list[Action]) -> bool:
        """False where that version is there already."""
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f".{uuid.uuid4()}.tmp"
        with draft.open("w") as file:
            file.writelines(json.dumps(action) + "\n" for action in actions)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, self._file(version))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        on_disk(self._folder)
        return True

    def _file(self, version: int) -> Path:
        return self._folder / f"{version:020}.json"


def created(schema: str, folders: Iterable[str]) -> list[Action]:
    """What the first version of a lake says."""
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": list(folders),
                "configuration": {},
                "createdTime": now_ms(),
            }
        },
    ]


def reached(writer: str, position: int) -> Action:
    """How far a writer is."""
    return {"txn": {"appId": writer, "version": position, "lastUpdated": now_ms()}}


def on_disk(path: Path) -> None:
    """Waits until a file, or the names in a folder, outlive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
