"""Who may append what next. The idempotence table is what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import MAX_SEQUENCE, read_header
from kwire.protocol.records.record import Record
from kwire.storage.producer_entry import CompletedTxn
from kwire.storage.producer_state import ProducerUpdate
from kwire.storage.validated import Origin

from .producers import DAY, NOW, Partition, data_header, refused


@pytest.fixture
def log() -> Partition:
    return Partition()


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
    update = ProducerUpdate(log.state, Origin.CLIENT)
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
    update = ProducerUpdate(log.state, Origin.CLIENT)
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
    assert log.state.first_unstable_offset == 3
    assert log.mark() == [CompletedTxn(500, 3, 12, False)]
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
    update = ProducerUpdate(log.state, Origin.REPLICATION)
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
        ProducerUpdate(log.state, Origin.REPLICATION).append_batch(read_header(bad), bad)


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


def test_which_batch_is_plainly_the_next_one(log: Partition) -> None:
    log.append(0, 3)
    state = log.state
    known = state.entries[500]
    assert state.next_of(data_header(3)) is known
    for other in (
        data_header(0),  # there already
        data_header(2),
        data_header(4),
        data_header(3, epoch=1),
        data_header(3, pid=501),
        data_header(3, txn=True),
        data_header(3)._replace(attributes=0x20),
    ):
        assert state.next_of(other) is None
    state.begin_verification(500, 3, 0, NOW, supports_epoch_bump=True)
    assert state.next_of(data_header(3)) is None


def test_in_a_transaction_the_next_one_is_of_it(log: Partition) -> None:
    log.append(0, 3, txn=True)
    assert log.state.next_of(data_header(3)) is None
    assert log.state.next_of(data_header(3, txn=True)) is log.state.entries[500]


def test_where_sequences_begin_anew_a_batch_is_not_plainly_the_next_one(log: Partition) -> None:
    log.append(2**31 - 5, 3)
    assert log.state.next_of(data_header(2**31 - 2, 2)) is log.state.entries[500]
    assert log.state.next_of(data_header(2**31 - 2, 3)) is None
    log.append(2**31 - 2, 2)
    assert log.state.next_of(data_header(0)) is None
