"""Batches as they were appended and as they are found, and what follows from them: a second, simple reckoning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.log import Log

KeyValue = tuple[int, str, str | None]
"""Offset, key, value."""


class Batch(NamedTuple):
    """One batch with its place in the log."""

    first: int
    last: int
    epoch: int
    """The leader's."""
    records: tuple[KeyValue, ...]
    """None in a control batch."""
    producer: int = -1
    sequence: int = -1
    transactional: bool = False
    commit: bool | None = None
    """Of a control batch; None in another."""


class Transaction(NamedTuple):
    """An aborted one, as the index has it."""

    producer: int
    first: int
    marker: int
    stable: int


def found(log: Log) -> list[Batch]:
    """All batches from the one that holds the log's start on."""
    batches: list[Batch] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 1 << 20, min_one=True).slice
        if part is None:
            break
        for header, data in iter_batches(part.read()):
            commit = None
            records: tuple[KeyValue, ...] = ()
            if header.control:
                marker = read_end_txn_marker(data)
                commit = None if marker is None else marker.commit
            else:
                records = tuple(
                    (r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode())
                    for r in iter_records(data)
                )
            batches.append(
                Batch(
                    header.base_offset,
                    header.last_offset,
                    header.leader_epoch,
                    records,
                    header.producer_id,
                    header.base_sequence,
                    header.transactional,
                    commit,
                )
            )
            offset = max(offset, header.next_offset)
    return batches


def next_sequences(batches: Iterable[Batch]) -> dict[int, tuple[int, int]]:
    """Of each producer: the sequence that is to come next, and the offset of its last record."""
    known = {}
    for batch in batches:
        if batch.producer >= 0 and batch.commit is None:
            known[batch.producer] = batch.sequence + batch.last - batch.first + 1, batch.last
    return known


def ongoing(batches: Iterable[Batch]) -> dict[int, int]:
    """The producers whose transactions are open, and where those begin."""
    began: dict[int, int] = {}
    for batch in batches:
        if batch.commit is not None:
            began.pop(batch.producer, None)
        elif batch.transactional:
            began.setdefault(batch.producer, batch.first)
    return began


def aborted(batches: Iterable[Batch]) -> list[Transaction]:
    """The transactions that were aborted, in the order of their markers."""
    began: dict[int, int] = {}
    ended = []
    for batch in batches:
        if batch.commit is None:
            if batch.transactional:
                began.setdefault(batch.producer, batch.first)
            continue
        first = began.pop(batch.producer, None)
        if first is not None and not batch.commit:
            ended.append(Transaction(batch.producer, first, batch.last, min(began.values(), default=batch.last + 1)))
    return ended


def committed(batches: Sequence[Batch], end: int) -> list[KeyValue]:
    """What read_committed consumers see of the records below `end`, and below the first open transaction."""
    stable = min([end, *ongoing(batches).values()])
    gone = {(txn.producer, txn.first, txn.marker) for txn in aborted(batches)}
    return [
        record
        for batch in batches
        if batch.commit is None and batch.last < stable
        for record in batch.records
        if not any(
            batch.transactional and producer == batch.producer and first <= batch.first <= marker
            for producer, first, marker in gone
        )
    ]


def read_committed(log: Log) -> list[KeyValue]:
    """As a consumer reads: without the records of those transactions that the log says were aborted."""
    seen: list[KeyValue] = []
    offset, stable = log.log_start_offset, log.last_stable_offset
    while offset < stable:
        answer = log.read(offset, 400, upto=stable, min_one=True)
        if answer.slice is None:
            break
        gone = sorted((txn.first_offset, txn.producer_id) for txn in log.aborted(offset, answer))
        inside: set[int] = set()
        for header, data in iter_batches(answer.slice.read()):
            while gone and gone[0][0] <= header.last_offset:
                inside.add(gone.pop(0)[1])
            if header.control:
                inside.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in inside):
                seen += [
                    (r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode())
                    for r in iter_records(data)
                    if r.offset >= offset
                ]
            offset = max(offset, header.next_offset)
    return seen


def latest(records: Iterable[KeyValue]) -> dict[str, tuple[int, str]]:
    """Of each key its last record, without those that a tombstone deletes."""
    last = {key: (offset, value) for offset, key, value in records}
    return {key: (offset, value) for key, (offset, value) in last.items() if value is not None}
