"""Look-ups in index files give what the indexes in memory give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.files import File
from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage.offset_index import OffsetIndex
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.tiered.index_files import OffsetIndexFile, TimeIndexFile
from kwire.storage.time_index import TimeIndex

COLUMN = st.lists(st.integers(0, 200), max_size=20, unique=True).map(sorted)


def file_of(data: bytes) -> File:
    files = MemoryFileSystem()
    files.make_dirs("d")
    files.write("d/f", data)
    return files.open("d/f")


@given(COLUMN, COLUMN, st.integers(0, 220))
def test_offsets(offsets: list[int], positions: list[int], wanted: int) -> None:
    index = OffsetIndex(1000)
    for offset, position in zip(offsets, positions, strict=False):
        index.append(1000 + offset, position)
    of_file = OffsetIndexFile(file_of(index.encode()), 1000)
    assert of_file.floor(1000 + wanted) == index.floor(1000 + wanted)
    assert of_file.offset_at_or_after(wanted) == index.offset_at_or_after(wanted)


@given(COLUMN, COLUMN, st.integers(0, 220))
def test_times(times: list[int], offsets: list[int], wanted: int) -> None:
    index = TimeIndex(1000)
    for time, offset in zip(times, offsets, strict=False):
        index.maybe_append(time, 1000 + offset)
    assert TimeIndexFile(file_of(index.encode()), 1000).floor(wanted) == index.floor(wanted)


def test_half_an_entry_is_no_index() -> None:
    with pytest.raises(CorruptIndex):
        OffsetIndexFile(file_of(bytes(9)), 0)
    with pytest.raises(CorruptIndex):
        TimeIndexFile(file_of(bytes(13)), 0)
