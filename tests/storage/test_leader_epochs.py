import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.storage.leader_epochs import LeaderEpochCache

UNKNOWN = (-1, -1)


def epoch_at(epochs, offset):
    """The epoch in which an offset was, or would next be, written."""
    return max((epoch for epoch, start in epochs.entries() if start <= offset), default=None)


histories = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 40)), max_size=12)


def cache():
    return LeaderEpochCache([(1, 0), (3, 10), (4, 25)])


@given(histories)
def test_both_columns_always_ascend(assignments):
    epochs = LeaderEpochCache(assignments)
    for column in zip(*epochs.entries(), strict=True):
        assert list(column) == sorted(set(column))
    if assignments:
        epoch, start = assignments[-1]
        assert epochs.latest_epoch == epoch
        assert epoch_at(epochs, start) == epoch


@given(histories, st.integers(0, 45))
def test_every_offset_left_keeps_its_epoch(assignments, offset):
    before = LeaderEpochCache(assignments)
    after = LeaderEpochCache(assignments)
    after.truncate_from_start(offset)
    assert all(epoch_at(after, o) == epoch_at(before, o) for o in range(offset, 60))
    after = LeaderEpochCache(assignments)
    after.truncate_from_end(offset)
    assert all(epoch_at(after, o) == epoch_at(before, o) for o in range(offset))
    assert all(start < offset for _, start in after.entries())


def test_ends_of_epochs():
    assert cache().end_offset_for(4, 99) == (4, 99)
    assert cache().end_offset_for(3, 99) == (3, 25)
    assert cache().end_offset_for(2, 99) == (1, 10)
    assert cache().end_offset_for(1, 99) == (1, 10)
    assert cache().end_offset_for(0, 99) == (0, 0)
    assert cache().end_offset_for(5, 99) == UNKNOWN
    assert cache().end_offset_for(-1, 99) == UNKNOWN
    assert LeaderEpochCache().end_offset_for(0, 99) == UNKNOWN


def test_the_latest_epoch_is_not_assigned_again():
    epochs = cache()
    epochs.assign(4, 30)
    assert not epochs.dirty
    epochs.assign(4, 20)
    assert epochs.dirty
    assert epochs.entries() == [(1, 0), (3, 10), (4, 20)]


def test_an_epoch_that_wrote_nothing_is_replaced():
    epochs = cache()
    epochs.assign(6, 25)
    assert epochs.entries() == [(1, 0), (3, 10), (6, 25)]


def test_contradictions_are_forgotten():
    epochs = cache()
    epochs.assign(2, 12)
    assert epochs.entries() == [(1, 0), (2, 12)]


def test_truncation_from_the_start_keeps_the_epoch_of_the_new_start():
    epochs = cache()
    epochs.truncate_from_start(10)
    assert epochs.entries() == [(3, 10), (4, 25)]
    epochs.truncate_from_start(17)
    assert epochs.entries() == [(3, 17), (4, 25)]
    assert epochs.dirty
    assert epochs.earliest == (3, 17)


def test_before_the_first_epoch_nothing_is_known():
    assert LeaderEpochCache().latest_epoch is None
    assert LeaderEpochCache().earliest is None


def test_clear():
    epochs = cache()
    epochs.clear()
    assert epochs.entries() == []
    assert epochs.dirty


def test_negative_values_are_refused():
    with pytest.raises(ValueError, match="epoch -1"):
        cache().assign(-1, 5)


def test_what_came_before_is_put_in_front() -> None:
    cache = LeaderEpochCache([(3, 30), (5, 50)])
    cache.begin_with([(0, 0), (2, 15)])
    assert cache.entries() == [(0, 0), (2, 15), (3, 30), (5, 50)]
    cache = LeaderEpochCache([(2, 30), (5, 50)])
    cache.begin_with([(0, 0), (2, 15), (4, 20)])
    assert cache.entries() == [(0, 0), (2, 15), (5, 50)]
    cache.begin_with([])
    assert cache.entries() == [(0, 0), (2, 15), (5, 50)]
