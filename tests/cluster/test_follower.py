"""A follower as its leader sees it: caught up or not."""

from kwire.cluster.follower import Follower

LAG = 100


def fetched(follower: Follower, offset: int, leader_end: int, now: int) -> None:
    follower.fetched(offset, 0, leader_end, now, -1)


def test_unknown_is_not_caught_up_however_young_the_clock():
    assert not Follower(2).is_caught_up(0, 0, LAG)


def test_at_the_leaders_end():
    follower = Follower(2)
    fetched(follower, 10, 10, now=1000)
    assert follower.is_caught_up(10, 1_000_000, LAG)  # nothing came since
    assert follower.is_caught_up(11, 1000 + LAG, LAG)
    assert not follower.is_caught_up(11, 1001 + LAG, LAG)


def test_keeping_up_without_ever_reaching_the_end():
    """Each fetch is at the end the leader had at the fetch before: it is a fetch behind, no more."""
    follower = Follower(2)
    for number in range(10):
        fetched(follower, 10 * number, 10 * (number + 1), now=1000 + 50 * number)
    assert follower.caught_up_ms == 1000 + 50 * 8
    assert follower.is_caught_up(1000, 1450, LAG)


def test_falling_behind():
    follower = Follower(2)
    fetched(follower, 10, 10, now=0)
    for number in range(10):
        fetched(follower, 11 + number, 100 * (number + 1), now=50 * (number + 1))
    assert follower.caught_up_ms == 0  # only the second fetch was as far as the leader had been, at the first
    assert not follower.is_caught_up(1000, 500, LAG)


def test_a_new_leader_knows_nothing_of_offsets_and_trusts_the_isr_for_a_while():
    follower = Follower(2)
    fetched(follower, 10, 10, now=0)
    follower.reset(new_leader=True, in_sync=True, leader_end_offset=20, now_ms=500)
    assert follower.log_end_offset == -1
    assert follower.is_caught_up(20, 500 + LAG, LAG)
    assert not follower.is_caught_up(20, 501 + LAG, LAG)
    follower.reset(new_leader=True, in_sync=False, leader_end_offset=20, now_ms=500)
    assert not follower.is_caught_up(20, 500, LAG)


def test_the_same_leader_in_a_new_epoch_keeps_the_offsets():
    follower = Follower(2)
    fetched(follower, 10, 10, now=0)
    follower.reset(new_leader=False, in_sync=False, leader_end_offset=12, now_ms=500)
    assert follower.log_end_offset == 10
    fetched(follower, 11, 13, now=600)
    assert not follower.is_caught_up(13, 600, LAG)
    fetched(follower, 13, 13, now=700)
    assert follower.is_caught_up(14, 700, LAG)
