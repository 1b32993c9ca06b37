"""The system is had to begin to write what was appended a while ago."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.memory_files import MemoryFile
from kwire.storage import early_writing, reserve
from kwire.storage.early_writing import DELAY_MS

from .support import Place, append, run

STEP = 100_000


@pytest.fixture
def told(monkeypatch):
    """The (file's name, position, end) of each range that the system was had to begin to write."""
    ranges = []

    def begin_writing(file, position, size):
        ranges.append((file.path.rpartition("/")[2], position, position + size))

    monkeypatch.setattr(MemoryFile, "begin_writing", begin_writing)
    monkeypatch.setattr(early_writing, "STEP", STEP)
    return ranges


class Appending:
    """A log in memory."""

    def __init__(self, **values):
        self.place = Place(**values)
        self.log = self.place.open()

    @property
    def segment(self):
        return self.log.segments.active

    async def upto(self, size, at_once=10_000):
        """Appends until the active segment is so large; when told what of it was due."""
        while self.segment.size < size:
            await append(self.log, "v" * at_once)

    async def wait(self, ms=DELAY_MS):
        self.place.clock.advance(ms)
        await self.place.services.chores.finish_due()


@pytest.mark.parametrize("preallocate", [False, True])
async def test_a_segment_that_grows_is_written_a_step_at_a_time(told, preallocate):
    appending = Appending(preallocate=preallocate)
    await appending.upto(STEP)
    size = appending.segment.size
    await appending.wait(DELAY_MS - 1)
    assert told == []
    await appending.wait(1)
    ((name, start, end),) = told
    assert name.endswith(".log")
    assert start == 0
    assert end <= size < end + reserve.PIECE
    await appending.upto(3 * STEP)
    await appending.wait()
    assert [start for _, start, _ in told[1:]] == [end for _, _, end in told[:-1]]
    assert len(told) == 3 or appending.segment.size - told[-1][2] < STEP
    await appending.wait(100 * DELAY_MS)
    assert appending.segment.size - told[-1][2] < STEP


@given(sizes=st.lists(st.integers(1, 60_000), min_size=1, max_size=60))
def test_each_byte_once_and_none_of_the_folio_that_grows(sizes):
    with pytest.MonkeyPatch.context() as patch:
        told = []
        patch.setattr(MemoryFile, "begin_writing", lambda _, position, size: told.append((position, position + size)))
        patch.setattr(early_writing, "STEP", STEP)
        run(_append_and_look, sizes, told)


async def _append_and_look(sizes, told):
    appending, upto = Appending(), 0
    for size in sizes:
        told.clear()
        await append(appending.log, "v" * size)
        await appending.wait()
        for start, end in told:
            assert start == upto < end <= appending.segment.size
            assert end % reserve.PIECE == 0
            upto = end
        assert appending.segment.size - upto < STEP


async def test_what_comes_in_the_place_of_what_was_cut_off_is_written_as_well(told):
    appending = Appending()
    await appending.upto(STEP // 2)
    size, offset = appending.segment.size, appending.log.log_end_offset
    await appending.upto(STEP - 15_000)
    appending.log.truncate_to(offset)
    assert appending.segment.size == size
    await appending.upto(size + STEP - 2_000, at_once=1_000)
    await appending.wait()
    assert told == []
    await appending.upto(size + STEP)
    await appending.wait()
    assert [start for _, start, _ in told] == [size]


@pytest.mark.parametrize("before", [STEP // 2, 3 * STEP])
async def test_of_a_segment_from_before_what_is_new_is_written_as_well(told, before):
    """And what was there, of which the system knows what is on the disk."""
    appending = Appending()
    await appending.upto(before)
    size = appending.segment.size
    await appending.log.close()
    appending.log = appending.place.open()
    assert appending.segment.size == size
    await appending.upto(size + STEP)
    await appending.wait()
    assert told[0][1] == 0
    assert appending.segment.size - told[-1][2] < STEP
    assert [start for _, start, _ in told[1:]] == [end for _, _, end in told[:-1]]


async def test_a_segment_that_rolled_meanwhile_is_written_and_one_that_was_closed_is_not(told):
    appending = Appending(segment_bytes=STEP + 50_000)
    await appending.upto(STEP)
    first = appending.segment
    while appending.segment is first:
        await append(appending.log, "v" * 10_000)
    await appending.wait()
    assert [name for name, _, _ in told] == [first.path(".log").rpartition("/")[2]]
    told.clear()
    await appending.upto(STEP)
    await appending.log.close()
    await appending.wait()
    assert told == []


async def test_a_preallocated_segment_that_is_recovered_is_written_from_its_end_on(told):
    place = Place(preallocate=True, segment_bytes=1 << 20)
    log = place.open()
    for _ in range(3):
        await append(log, "v" * 10_000)
    killed = Appending(preallocate=True, segment_bytes=1 << 20)
    killed.place = place
    killed.log = place.open(clean=False)
    size = killed.segment.size
    assert size < 40_000
    await killed.upto(size + STEP)
    await killed.wait()
    assert size < told[0][2] <= killed.segment.size


async def test_a_dir_has_one_chore_that_begins_with_all_that_is_due(told, monkeypatch):
    appending = Appending()
    chores = appending.place.services.chores
    await appending.upto(STEP)
    appending.place.clock.advance(DELAY_MS // 2)
    await appending.upto(3 * STEP)
    assert len(chores._queue) == 1
    await appending.wait(DELAY_MS // 2)
    assert len(told) == 1
    assert len(chores._queue) == 1
    await appending.wait(DELAY_MS // 2 - 1)
    assert len(told) == 1
    await appending.wait(2)
    assert len(told) == 3
    assert chores._queue == []
    await appending.upto(5 * STEP)
    await appending.wait(DELAY_MS + 2)
    assert len(told) == 5
