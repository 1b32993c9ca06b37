"""The state of the producers over restarts and truncations: snapshots that are taken, read, passed over, deleted."""

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.storage.producer_entry import CompletedTxn
from kwire.storage.producer_state import ProducerStateManager

from .producers import DAY, DIRECTORY, NOW, Partition, refused


@pytest.fixture
def log() -> Partition:
    return Partition()


def names(log: Partition) -> list[str]:
    return [name.removesuffix(".snapshot").lstrip("0") for name in log.files.list(DIRECTORY)]


def test_a_snapshot_restores_the_state(log: Partition) -> None:
    log.append(0)
    log.append(3)
    log.append(0, pid=501, txn=True)
    log.append(0, pid=502, timestamp=NOW - DAY)
    log.state.take_snapshot()
    log.state.remove_expired(NOW + 10 * DAY)
    log.state.take_snapshot()  # there is one of this offset
    log.state = log.reopened()
    assert log.state.snapshots == [12]
    log.state.truncate_and_reload(0, 12, NOW)
    assert log.state.end_offset == 12
    assert set(log.state.entries) == {500, 501}  # the third has expired
    assert log.state.first_unstable_offset == 6
    assert log.append(3) == 3  # the last batch is recognised
    assert refused(log.append, 0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # the one before no more
    assert log.append(6) == 12
    assert log.mark(pid=501) == [CompletedTxn(501, 6, 15, False)]


def test_restored_transactions_are_in_order_of_offsets(log: Partition) -> None:
    log.append(0)
    log.append(0, pid=501, txn=True)
    log.append(3, txn=True)
    log.state.take_snapshot()
    log.state = log.reopened()
    log.state.truncate_and_reload(0, log.end, NOW)
    assert log.state.first_unstable_offset == 3
    log.mark(pid=501)
    log.state.on_high_watermark(log.end)
    assert log.state.first_unstable_offset == 6


def test_a_torn_snapshot_is_passed_over(log: Partition) -> None:
    log.append(0)
    log.state.take_snapshot()
    log.files.sync_volume(DIRECTORY)
    log.append(3)
    log.state.take_snapshot()
    log.files.lose_power(lambda synced, size: max(synced, size // 2))
    log.state = log.reopened()
    log.state.truncate_and_reload(0, 6, NOW)
    assert log.state.end_offset == 3
    assert names(log) == ["3"]
    assert log.state.entries[500].last_sequence == 2


def test_a_snapshot_replaces_a_longer_file_in_its_way(log: Partition) -> None:
    path = log.state.snapshot_path(3)
    log.files.write_atomically(path, bytes(500))
    log.append(0)
    log.state.take_snapshot()
    assert len(log.files.read(path)) == 10 + 46


def test_truncation_goes_back_to_the_snapshot_before(log: Partition) -> None:
    for index in range(4):
        log.append(3 * index)
        log.state.take_snapshot()
    log.append(12, txn=True)
    assert names(log) == ["3", "6", "9", "12"]
    log.state.truncate_and_reload(0, 10, NOW)
    assert names(log) == ["3", "6", "9"]
    assert log.state.end_offset == 9  # offset 9 is for the caller to append again
    assert log.state.entries[500].last_sequence == 8
    assert log.state.first_unstable_offset is None
    log.state.truncate_and_reload(3, 10, NOW)
    assert names(log) == ["6", "9"]


def test_truncating_to_the_end_keeps_the_state(log: Partition) -> None:
    for sequence in (0, 3):
        log.append(sequence)
        log.state.take_snapshot()
    log.state.truncate_and_reload(4, 6, NOW)
    assert names(log) == ["6"]
    assert len(log.state.entries[500].batches) == 2
    assert log.state.end_offset == 6


def test_without_any_snapshot_the_state_is_empty(log: Partition) -> None:
    log.append(0, txn=True)
    log.state.truncate_and_reload(1, 2, NOW)
    assert (log.state.end_offset, dict(log.state.entries), log.state.first_unstable_offset) == (1, {}, None)
    log.state.take_snapshot()
    assert names(log) == []


def test_truncating_all(log: Partition) -> None:
    log.append(0, txn=True)
    log.mark()
    log.state.take_snapshot()
    log.state.truncate_fully_and_start_at(100)
    assert (log.state.end_offset, dict(log.state.entries), log.state.first_unstable_offset) == (100, {}, None)
    assert names(log) == []
    log.state.take_snapshot()
    assert names(log) == ["100"]


def test_a_later_log_start(log: Partition) -> None:
    log.append(0, txn=True)
    log.mark()
    log.state.on_log_start_offset(3)
    assert log.state.first_unstable_offset == 0
    log.state.on_log_start_offset(4)
    assert log.state.first_unstable_offset is None
    log.state.on_log_start_offset(50)
    assert log.state.end_offset == 50
    assert 500 in log.state.entries  # its records are gone, the producer is not
    assert log.append(3) == 4


def write_snapshots(log: Partition, *offsets: int) -> None:
    for offset in offsets:
        log.state.end_offset = offset
        log.state.take_snapshot()


@pytest.mark.parametrize(
    ("bases", "left"),
    [
        ([5, 9], ["5", "9", "12"]),  # the last one was written by a clean stop
        ([5], ["5", "12"]),
        ([5, 20], ["5"]),
        ([0], ["12"]),
        ([], ["12"]),
        ([12], ["12"]),
    ],
)
def test_stray_snapshots(log: Partition, bases: list[int], left: list[str]) -> None:
    write_snapshots(log, 2, 5, 9, 12)
    log.state.remove_stray_snapshots(bases)
    assert names(log) == left
    assert log.state.snapshots == [int(name) for name in left]


def test_deleting_with_segments(log: Partition) -> None:
    write_snapshots(log, 2, 5, 9)
    assert log.state.mark_snapshot_deleted(5) == f"{DIRECTORY}/00000000000000000005.snapshot.deleted"
    assert log.state.mark_snapshot_deleted(5) is None
    log.files.remove(log.state.snapshot_path(9))
    assert log.state.mark_snapshot_deleted(9) is None  # somebody was faster
    assert log.state.snapshots == [2]
    assert log.reopened().snapshots == [2]  # what waits for deletion is not seen


def test_a_snapshot_that_vanished(log: Partition) -> None:
    write_snapshots(log, 2, 5, 9)
    log.files.remove(log.state.snapshot_path(9))
    log.files.remove(log.state.snapshot_path(2))
    log.state.truncate_and_reload(0, 10, NOW)
    assert log.state.end_offset == 5
    log.state.truncate_fully_and_start_at(0)
    assert names(log) == []


def test_file_names_may_be_handed_in(log: Partition) -> None:
    given_names = ["00000000000000000007.snapshot", "00000000000000000007.log", "x.snapshot", "leader-epoch-checkpoint"]
    state = ProducerStateManager(log.files, "/nowhere", DAY, given_names)
    assert state.snapshots == [7]
