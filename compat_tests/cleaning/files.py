"""What the files of a partition say, so that two partitions can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.transaction_index import decode_transactions

HORIZON = "<delete horizon>"


def contents(folder: Path) -> dict[str, Any]:
    """By the files' names: batches, aborted transactions; None for what is an index or a snapshot.

    The indexes of a segment that is left without records are left out: Apache Kafka has empty ones, kwire none.
    """
    files = [file for file in sorted(folder.glob("0*")) if file.suffix != ".deleted"]
    empty = {file.stem for file in files if file.suffix == ".log" and not file.stat().st_size}
    return {
        file.name: _content(file)
        for file in files
        if not (file.stem in empty and file.suffix in (".index", ".timeindex"))
    }


def _content(file: Path) -> Any:
    if file.suffix == ".log":
        return _batches(file.read_bytes())
    if file.suffix == ".txnindex":
        return decode_transactions(file.read_bytes(), int(file.stem))
    return None


def _batches(data: bytes) -> list[Any]:
    """The header's fields and the records of each.

    Left out is what depends on a codec's library, and on the moment of the cleaning: that is a delete horizon, from
    which the records' times are counted then, in as many bytes as it takes.
    """
    found = []
    for header, batch in iter_batches(data):
        fields = header._asdict()
        del fields["crc"]
        if header.codec or header.has_delete_horizon:
            del fields["batch_length"]
        if header.has_delete_horizon:
            fields["base_timestamp"] = HORIZON
        found.append({**fields, "records": list(iter_records(batch))})
    return found


def horizons(folder: Path) -> list[int]:
    """The delete horizons (ms) of all batches that have one."""
    return [
        header.base_timestamp
        for file in sorted(folder.glob("*.log"))
        for header, _ in iter_batches(file.read_bytes())
        if header.has_delete_horizon
    ]


def checkpoint(data_dir: Path) -> dict[tuple[str, int], int]:
    """How far each partition is clean."""
    path = data_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    entries = (line.rsplit(" ", 2) for line in lines)
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
