"""Who may append what next. The idempotence table is what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import EndTxnMarker, build_end_txn_marker
from kwire.protocol.records.header import MAX_SEQUENCE, BatchHeader, read_header
from kwire.protocol.records.record import Record
from kwire.storage.producer_state import CompletedTxn, ProducerStateManager
from kwire.storage.validated import Origin

DIRECTORY = "/data/t-0"
DAY = 86_400_000
NOW = 1_795_236_605_466


class Partition:
    """A log that keeps no records, only what the producers' state needs of it."""

    def __init__(self) -> None:
        self.files = MemoryFileSystem()
        self.files.make_dirs(DIRECTORY)
        self.state = self.reopened()
        self.end = 0

    def reopened(self) -> ProducerStateManager:
        return ProducerStateManager(self.files, DIRECTORY, "t-0", DAY)

    def append(
        self,
        sequence: int,
        count: int = 3,
        *,
        pid: int = 500,
        epoch: int = 0,
        txn: bool = False,
        origin: Origin = Origin.CLIENT,
        timestamp: int = NOW,
    ) -> int:
        """What a produce request is answered: the base offset."""
        header = data_header(sequence, count, pid=pid, epoch=epoch, txn=txn, timestamp=timestamp)
        if origin is Origin.CLIENT:
            duplicate = self.state.find_duplicate(header)
            if duplicate is not None:
                return duplicate.first_offset
        update = self.state.begin(origin)
        update.append(header, self.end)
        self.state.apply(update)
        first = self.end
        self.end += count
        self.state.end_offset = self.end
        return first

    def mark(
        self,
        commit: bool = True,
        *,
        pid: int = 500,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        origin: Origin = Origin.COORDINATOR,
        version: int = 0,
    ) -> list[CompletedTxn]:
        """Ends the producer's transaction; returns what the log then writes to the transaction index."""
        batch = build_end_txn_marker(pid, epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=NOW)
        update = self.state.begin(origin)
        marker = EndTxnMarker(commit, coordinator_epoch, NOW, self.end)
        update.append(read_header(batch), self.end, marker, version)
        self.state.apply(update)
        for completed in update.completed:
            self.state.complete(completed)
        self.end += 1
        self.state.end_offset = self.end
        return update.completed


def data_header(
    sequence: int, count: int = 3, *, pid: int = 500, epoch: int = 0, txn: bool = False, timestamp: int = NOW
) -> BatchHeader:
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0x10 if txn else 0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        count=count,
    )


@pytest.fixture
def log() -> Partition:
    return Partition()


def refused(call, *arguments: object, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **options)
    return caught.value.code


# Idempotence


def test_a_producers_life_as_kafka_answers_it(log: Partition) -> None:
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(0) == 0
    assert log.append(0) == 0  # a duplicate: its old offset
    assert log.append(3) == 3
    assert refused(log.append, 7) is out_of_order
    assert refused(log.append, 4) is out_of_order
    assert refused(log.append, 0, 2) is out_of_order  # overlaps a batch, and is none of them
    assert [log.append(6 + 3 * index) for index in range(5)] == [6, 9, 12, 15, 18]
    assert refused(log.append, 0) is out_of_order  # a duplicate, but no longer among the last five
    assert log.append(6) == 6
    assert refused(log.append, 5, epoch=1) is out_of_order
    assert log.append(0, epoch=1) == 21
    assert refused(log.append, 21) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(log.append, 18) is ErrorCode.INVALID_PRODUCER_EPOCH  # a duplicate of an older epoch is none
    assert log.append(50, pid=501) == 24  # of an unknown producer any sequence is taken
    assert log.append(53, pid=501) == 27
    assert refused(log.append, 0, pid=501) is out_of_order
    assert log.append(MAX_SEQUENCE - 1, 2, pid=502) == 30
    assert log.append(0, pid=502) == 32  # sequences wrap
    assert log.append(MAX_SEQUENCE - 1, 2, pid=502) == 30
    assert log.append(MAX_SEQUENCE - 1, 4, pid=503) == 35  # also within a batch
    assert log.append(MAX_SEQUENCE - 1, 4, pid=503) == 35
    assert log.append(2, pid=503) == 39
    assert log.append(MAX_SEQUENCE, 1, pid=504) == 42
    assert log.append(0, 1, pid=504) == 43
    assert log.append(0, 1, pid=504, epoch=9) == 44
    assert log.end == 45


def test_a_duplicate_keeps_the_time_it_was_appended_with(log: Partition) -> None:
    log.append(0, timestamp=NOW - 5)
    duplicate = log.state.find_duplicate(data_header(0, timestamp=NOW))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset, duplicate.timestamp) == (0, 2, NOW - 5)


def test_batches_without_producer_id_leave_no_trace(log: Partition) -> None:
    assert log.append(-1, pid=-1) == 0
    assert log.append(-1, pid=-1) == 3
    assert not log.state.entries


def test_what_was_begun_and_not_applied_never_was(log: Partition) -> None:
    log.append(0)
    before = log.state.entries[500].batches.copy()
    update = log.state.begin(Origin.CLIENT)
    update.append(data_header(3, txn=True), 3)
    update.append(data_header(0, pid=900), 6)
    assert log.state.entries[500].batches == before
    assert list(log.state.entries) == [500]
    assert log.state.first_unstable_offset is None
    assert log.append(3) == 3


def test_a_refused_append_changes_nothing(log: Partition) -> None:
    log.append(0, txn=True)
    assert refused(log.append, 3) is ErrorCode.INVALID_TXN_STATE  # a transaction is open, this is not part of it
    assert log.append(3, txn=True) == 3


def test_several_batches_of_one_append_follow_one_another(log: Partition) -> None:
    update = log.state.begin(Origin.CLIENT)
    update.append(data_header(0), 0)
    update.append(data_header(3), 3)
    with pytest.raises(KafkaError):
        update.append(data_header(7), 6)


def test_a_coordinators_batches_have_no_sequence(log: Partition) -> None:
    assert log.append(-1, 1, txn=True, origin=Origin.COORDINATOR) == 0
    assert log.append(-1, 1, txn=True, origin=Origin.COORDINATOR) == 1
    assert refused(log.append, -1, 1, epoch=-1, origin=Origin.COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.state.entries[500].last_sequence == -1
    assert log.state.entries[500].last_offset == 1


def test_a_follower_takes_what_its_leader_took(log: Partition) -> None:
    log.append(0, epoch=5)
    assert log.append(40, epoch=5, origin=Origin.REPLICATION) == 3
    assert log.append(7, epoch=2, origin=Origin.REPLICATION) == 6
    assert log.state.entries[500].epoch == 2


# Transactions


def test_an_open_transaction_holds_back_the_last_stable_offset(log: Partition) -> None:
    log.append(-1, pid=-1)
    assert log.state.first_unstable_offset is None
    log.append(0, txn=True)
    log.append(3, txn=True)
    log.append(0, pid=501, txn=True)
    assert log.state.first_unstable_offset == log.state.first_undecided_offset == 3
    assert log.mark() == [CompletedTxn(500, 3, 12, False)]
    assert log.state.first_undecided_offset == 9
    assert log.state.first_unstable_offset == 3  # until the marker is replicated
    log.state.on_high_watermark(12)
    assert log.state.first_unstable_offset == 3
    log.state.on_high_watermark(13)
    assert log.state.first_unstable_offset == 9
    assert log.mark(False, pid=501) == [CompletedTxn(501, 9, 13, True)]
    log.state.on_high_watermark(14)
    assert log.state.first_unstable_offset is None


def test_the_last_stable_offset_for_the_transaction_index(log: Partition) -> None:
    log.append(0, txn=True)
    log.append(0, pid=501, txn=True)
    assert log.state.last_stable_offset(CompletedTxn(500, 0, 6, True)) == 3
    assert log.state.last_stable_offset(CompletedTxn(501, 3, 6, True)) == 0
    log.mark(pid=501)
    assert log.state.last_stable_offset(CompletedTxn(500, 0, 7, True)) == 8


def test_a_marker_without_records_completes_nothing(log: Partition) -> None:
    assert log.mark() == []
    entry = log.state.entries[500]
    assert (entry.epoch, entry.coordinator_epoch, entry.last_timestamp, entry.batches) == (0, 0, NOW, [])
    assert log.append(0, txn=True) == 1


def test_a_marker_keeps_the_batches_of_its_epoch(log: Partition) -> None:
    log.append(0, txn=True)
    log.mark()
    assert log.append(0, txn=True) == 0
    assert log.append(3, txn=True) == 4
    log.mark(epoch=1)
    assert log.append(0, epoch=1, txn=True) == 8  # a new epoch starts anew


def test_markers_are_fenced(log: Partition) -> None:
    log.append(0, epoch=3, txn=True)
    assert refused(log.mark, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    log.mark(epoch=3, coordinator_epoch=7)
    assert refused(log.mark, epoch=3, coordinator_epoch=6) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.mark(epoch=1, coordinator_epoch=1, origin=Origin.REPLICATION) == []


def test_an_epoch_for_each_transaction(log: Partition) -> None:
    """transaction.version 2: a marker's epoch is above its records'; one written again is no harm."""
    log.append(0, epoch=3, txn=True)
    assert refused(log.mark, epoch=3, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(log.mark(epoch=4, version=2)) == 1
    assert log.mark(epoch=4, version=2) == []
    assert refused(log.mark, epoch=3, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    log.append(0, epoch=32767, txn=True)
    assert len(log.mark(epoch=32767, version=2)) == 1  # there is no epoch after the last


def test_completing_what_is_not_open(log: Partition) -> None:
    with pytest.raises(ValueError, match="was not open"):
        log.state.complete(CompletedTxn(1, 2, 3, False))


def test_batches_from_the_log(log: Partition) -> None:
    """As a follower or recovery hands them in, with the offsets they have."""
    data = build_batch(
        [Record(40, NOW, None, b"x", [])],
        base_offset=40,
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        transactional=True,
    )
    marker = build_end_txn_marker(5, 1, commit=False, coordinator_epoch=2, timestamp=NOW + 1, base_offset=41)
    emptied = build_batch([], base_offset=42, last_offset=42, producer_id=5, producer_epoch=2, control=True)
    plain = build_batch([Record(43, NOW, None, b"x", [])], base_offset=43)
    update = log.state.begin(Origin.REPLICATION)
    for batch in (data, marker, emptied, plain):
        update.append_batch(read_header(batch), batch)
    log.state.apply(update)
    assert update.started == [(40, 5)]
    assert update.completed == [CompletedTxn(5, 40, 41, True)]
    entry = log.state.entries[5]
    assert (entry.epoch, entry.last_sequence, entry.last_offset) == (1, 9, 40)
    assert (entry.coordinator_epoch, entry.last_timestamp, entry.txn_first_offset) == (2, NOW + 1, -1)
    bad = build_batch([Record(0, 0, b"", b"", [])], producer_id=5, control=True)
    with pytest.raises(CorruptBatchError):
        log.state.begin(Origin.REPLICATION).append_batch(read_header(bad), bad)


# Expiry


def test_silent_producers_are_forgotten(log: Partition) -> None:
    log.append(0, timestamp=NOW)
    log.append(0, pid=501, timestamp=NOW + 1)
    log.append(0, pid=502, txn=True, timestamp=NOW - DAY)
    log.state.remove_expired(NOW + DAY - 1)
    assert set(log.state.entries) == {500, 501, 502}
    log.state.remove_expired(NOW + DAY)
    assert set(log.state.entries) == {501, 502}  # an open transaction keeps its producer
    assert log.append(70) == 9
    log.state.expiration_ms = 10
    log.state.remove_expired(NOW + DAY)
    assert set(log.state.entries) == {502}


# Snapshots and truncation


def names(log: Partition) -> list[str]:
    return [name.removesuffix(".snapshot").lstrip("0") for name in log.files.list(DIRECTORY)]


@pytest.mark.parametrize("sync", [True, False])
def test_a_snapshot_restores_the_state(log: Partition, sync: bool) -> None:
    log.append(0)
    log.append(3)
    log.append(0, pid=501, txn=True)
    log.append(0, pid=502, timestamp=NOW - DAY)
    assert log.state.take_snapshot(sync=sync) == f"{DIRECTORY}/00000000000000000012.snapshot"
    assert log.state.take_snapshot(sync=sync) is None  # nothing new
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


def test_only_a_synced_snapshot_outlives_the_power(log: Partition) -> None:
    log.append(0)
    log.state.take_snapshot(sync=True)
    log.append(3)
    log.state.take_snapshot(sync=False)
    log.files.lose_power(lambda synced, size: max(synced, size // 2))
    log.state = log.reopened()
    log.state.truncate_and_reload(0, 6, NOW)
    assert log.state.end_offset == 3  # the torn one is passed over, and deleted
    assert names(log) == ["3"]
    assert log.state.entries[500].last_sequence == 2


def test_a_snapshot_replaces_a_longer_file_in_its_way(log: Partition) -> None:
    path = log.state.snapshot_path(3)
    log.files.write_atomically(path, bytes(500))
    log.append(0)
    log.state.take_snapshot(sync=False)
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
    assert log.state.take_snapshot() is None


def test_truncating_all(log: Partition) -> None:
    log.append(0, txn=True)
    log.mark()
    log.state.take_snapshot()
    log.state.truncate_fully_and_start_at(100)
    assert (log.state.end_offset, dict(log.state.entries), log.state.first_unstable_offset) == (100, {}, None)
    assert names(log) == []
    assert log.state.take_snapshot() == f"{DIRECTORY}/00000000000000000100.snapshot"


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
    state = ProducerStateManager(log.files, "/nowhere", "t-0", DAY, given_names)
    assert state.snapshots == [7]
