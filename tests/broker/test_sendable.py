"""What of a log goes into an answer, by its size and by whether it is in memory."""

from __future__ import annotations

import pytest

from kwire.broker.sendable import sendable
from kwire.ports.files import SMALL_SLICE_BYTES, FileSlice
from kwire.ports.memory_files import MemoryFile, MemoryFileSystem


class Counting:
    """Runs what it is given at once, and counts."""

    runs = 0

    async def run(self, function, *args):
        self.runs += 1
        return function(*args)


def slice_of(size: int) -> FileSlice:
    files = MemoryFileSystem()
    files.make_dirs("/d")
    file = files.open("/d/a", create=True)
    file.pwrite([b"before", bytes(range(250)) * (size // 250 + 1)], 0)
    return FileSlice(file, 6, size)


@pytest.mark.parametrize("size", [1, SMALL_SLICE_BYTES, SMALL_SLICE_BYTES + 1, 1 << 20])
@pytest.mark.parametrize("cold", [False, True])
async def test_its_bytes_where_it_is_small_or_cold(size: int, cold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if cold:
        monkeypatch.setattr(MemoryFile, "resident", lambda self, position, size: False)
        monkeypatch.setattr(MemoryFile, "read_resident", lambda self, size, position: None)
    part, executor = slice_of(size), Counting()
    found = await sendable(executor, part)
    assert (found is part) == (size > SMALL_SLICE_BYTES and not cold)
    assert executor.runs == cold
    if found is not part:
        assert bytes(found) == part.read()


async def test_what_was_just_read_is_not_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(self: MemoryFile, position: int, size: int) -> bool:
        raise AssertionError("it was asked about when it was read")

    monkeypatch.setattr(MemoryFile, "resident", asked)
    part = slice_of(1 << 20)
    assert await sendable(Counting(), part, just_read=True) is part


async def test_what_is_streamed_stays_as_it_is() -> None:
    class Coming:
        def __len__(self) -> int:
            return 10

        async def read_from(self, start: int) -> bytes:
            raise AssertionError("nobody has asked")

    part = Coming()
    assert await sendable(Counting(), part) is part


@pytest.mark.parametrize("size", [1000, 1 << 20])
async def test_nothing_where_it_was_cut_off_meanwhile(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFile, "resident", lambda self, position, size: False)
    part = slice_of(size)
    part.file.truncate(size // 2)
    assert await sendable(Counting(), part) == b""
