from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage import open_files
from kwire.storage.batch_walk import SCAN_WINDOW, headers, verified
from kwire.storage.open_files import OpenFiles
from kwire.storage.recent_batches import RecentBatches

from .support import Place, append, placed, read_all, run


def file_of(data):
    files = MemoryFileSystem()
    files.make_dirs("/d")
    file = files.open("/d/log", create=True)
    file.pwrite([data], 0)
    return file


sizes = st.lists(st.integers(0, 400), max_size=12)


def built(paddings):
    parts = [placed(i, ["x" * padding]) for i, padding in enumerate(paddings)]
    return parts, b"".join(parts)


@given(sizes, st.binary(max_size=80), st.sampled_from([61, 100, 1000, SCAN_WINDOW]))
def test_walks_end_before_what_is_no_batch(paddings, tail, window):
    parts, data = built(paddings)
    file = file_of(data + tail)
    positions = [sum(map(len, parts[:i])) for i in range(len(parts))]
    assert [position for position, _ in headers(file, 0, len(data), window)] == positions
    found = list(verified(file, 0, file.size()))
    assert [position for position, _, _ in found] == positions
    assert [header.base_offset for _, header, _ in found] == list(range(len(parts)))


@given(sizes.filter(bool), st.data())
def test_a_flipped_bit_ends_a_verified_walk(paddings, data):
    parts, content = built(paddings)
    victim = data.draw(st.integers(0, len(parts) - 1))
    start = sum(map(len, parts[:victim]))
    at = data.draw(st.integers(start + 21, start + len(parts[victim]) - 1))
    torn = bytearray(content)
    torn[at] ^= 1 << data.draw(st.integers(0, 7))
    assert len(list(verified(file_of(torn), 0, len(torn)))) == victim


def test_a_batch_larger_than_the_window_is_read_whole():
    parts, data = built([10, 3 * SCAN_WINDOW, 20])
    file = file_of(data)
    assert [bytes(batch) == part for (_, _, batch), part in zip(verified(file, 0, len(data)), parts, strict=True)]
    assert len(list(headers(file, 0, len(data)))) == 3


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), max_size=700), st.integers(0, 50))
def test_recent_batches_know_or_say_that_they_do_not(plan, start):
    recent = RecentBatches(start)
    offset, position, known = start, 1000, []
    for count, size in plan:
        recent.add(offset + count, position)
        known.append((offset + count, position, size))
        offset, position = offset + count, position + size
    for target in {start, start + 1, offset - 1, offset, (start + offset) // 2}:
        expected = next(((at, size) for end, at, size in known if end > target), None)
        assert recent.find(target, position) in (expected, None)
    for end, at, size in known[-256:]:
        assert recent.find(end - 1, position) == (at, size)


class Thing:
    def __init__(self, name):
        self.name = name
        self.used = False
        self.open = True
        self.index_bytes = 0

    def drop_open(self):
        self.open = False

    def drop_indexes(self):
        self.index_bytes = 0


def test_what_was_not_used_lately_is_dropped_first():
    pool = OpenFiles(3)
    a, b, c, d, e = (Thing(name) for name in "abcde")
    for thing in (a, b, c):
        pool.opened(thing)
    for thing in (a, b, c):
        thing.used = False
    b.used = True
    pool.opened(d)
    assert [thing.open for thing in (a, b, c, d)] == [False, True, True, True]
    pool.opened(e)
    assert [thing.open for thing in (b, c, d, e)] == [True, False, True, True]
    assert len(pool) == 3


def test_where_all_were_used_the_oldest_goes():
    pool = OpenFiles(2)
    a, b, c = (Thing(name) for name in "abc")
    for thing in (a, b, c):
        pool.opened(thing)
    assert [thing.open for thing in (a, b, c)] == [False, True, True]


def test_forgetting():
    pool = OpenFiles(2)
    a = Thing("a")
    pool.opened(a)
    pool.forget(a)
    pool.forget(a)
    assert len(pool) == 0


def test_of_the_indexes_as_many_are_kept_as_have_room(monkeypatch):
    monkeypatch.setattr(open_files, "INDEX_BYTES", 25)
    pool = OpenFiles(10)
    things = [Thing(name) for name in "abcd"]
    for thing in things:
        thing.index_bytes = 10
        pool.opened(thing)
    assert [thing.index_bytes for thing in things] == [0, 0, 10, 10]
    assert all(thing.open for thing in things)


def test_where_many_are_open_not_each_of_them_is_looked_at_for_each_newcomer(monkeypatch):
    monkeypatch.setattr(open_files, "INDEX_BYTES", 100)
    pool = OpenFiles(1000)
    looked = 0

    class Counting(Thing):
        @property
        def index_bytes(self):
            nonlocal looked
            looked += 1
            return self.kept

        @index_bytes.setter
        def index_bytes(self, kept):
            self.kept = kept

    things = [Counting(number) for number in range(1000)]
    for thing in things:
        thing.index_bytes = 1
        pool.opened(thing)
        assert sum(each.kept for each in things) <= 100 + 1000 // 64
    assert looked < 100 * len(things)


def test_few_are_looked_at_often_though_there_were_many_before(monkeypatch):
    monkeypatch.setattr(open_files, "INDEX_BYTES", 25)
    pool = OpenFiles(1000)
    before = [Thing(number) for number in range(641)]
    for thing in before:
        pool.opened(thing)
    for thing in before:
        pool.forget(thing)
    things = [Thing(name) for name in "abcd"]
    for thing in things:
        thing.index_bytes = 10
        pool.opened(thing)
    assert [thing.index_bytes for thing in things] == [0, 0, 10, 10]


def test_who_reads_his_indexes_keeps_them(monkeypatch):
    monkeypatch.setattr(open_files, "INDEX_BYTES", 25)
    pool = OpenFiles(10)
    a, b, c = things = [Thing(name) for name in "abc"]
    for thing in things:
        pool.opened(thing)
    for thing in (a, b, c, a):
        thing.index_bytes = 10
        pool.indexes_loaded(thing)
    assert [thing.index_bytes for thing in things] == [10, 0, 10]
    b.index_bytes = 30
    pool.indexes_loaded(b)
    assert [thing.index_bytes for thing in things] == [0, 30, 0]
    gone = Thing("gone")
    gone.index_bytes = 30
    pool.indexes_loaded(gone)  # not open: nothing is known of it
    assert [thing.index_bytes for thing in (*things, gone)] == [0, 0, 0, 30]


def test_a_log_that_is_read_through_keeps_few_indexes(monkeypatch):
    monkeypatch.setattr(open_files, "INDEX_BYTES", 100)
    place = Place(segment_bytes=300, index_interval_bytes=0)
    log = place.open()
    for number in range(60):
        run(append, log, f"{number}")
    loaded = lambda: [segment for segment in log.segments if segment.indexes is not None]  # noqa: E731
    assert len(log.segments) > 12
    assert len(loaded()) < 8
    for _ in range(2):
        assert [offset for offset, _ in read_all(log)] == list(range(60))
        assert len(loaded()) < 8
    assert log.segments.active.indexes is not None
    run(log.close)
    assert len(read_all(place.open())) == 60
