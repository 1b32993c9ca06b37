import errno

import pytest

from kwire.ports.memory_files import MemoryFile
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import CorruptBatchError, InvalidBatch
from kwire.protocol.records.header import iter_batches, read_header
from kwire.storage import layout
from kwire.storage.log import UnexpectedAppendOffset

from .produced import validate
from .support import T0, Place, append, batch, end_transaction, idempotent, placed, read_all


async def test_offsets_and_the_leader_epoch_are_given():
    log = Place().open()
    info = await log.append_as_leader(batch(["a", "b"]), 3)
    assert (info.first_offset, info.last_offset, info.max_timestamp, info.log_append_time) == (0, 1, T0 + 1, -1)
    assert not info.duplicate
    assert await append(log, "c", epoch=4) == 2
    assert log.log_end_offset == 3
    headers = [header for header, _ in iter_batches(log.read(0, 1 << 20).slice.read())]
    assert [(h.base_offset, h.leader_epoch) for h in headers] == [(0, 3), (2, 4)]
    assert log.epochs.entries() == [(3, 0), (4, 2)]
    assert read_all(log) == [(0, "a"), (1, "b"), (2, "c")]


async def test_a_batch_is_one_gathered_write_of_what_came(monkeypatch):
    """Only the first 16 bytes are new: base offset, length, leader epoch. All others are those of the request."""
    log = Place().open()
    await append(log, "a")
    writes = []
    pwrite = MemoryFile.pwrite

    def noting(file, buffers, position):
        writes.append((file.path, list(buffers)))
        return pwrite(file, buffers, position)

    monkeypatch.setattr(MemoryFile, "pwrite", noting)
    sent = memoryview(batch(["b" * 5000]))
    await log.append_as_leader(sent, 3)
    ((path, (head, rest)),) = [write for write in writes if write[0].endswith(layout.LOG)]
    assert path == log.segments.active.path(layout.LOG)
    assert len(head) == 16
    assert rest.obj is sent.obj
    assert rest == sent[16:]


async def test_validated_batches_are_taken_as_they_are():
    place = Place(message_timestamp_type="LogAppendTime")
    log = place.open()
    info = await log.append_as_leader(validate(batch(["a"]), log.config, T0 + 99), 0)
    assert info.log_append_time == info.max_timestamp == T0 + 99


async def test_an_invalid_blob_is_refused():
    log = Place().open()
    torn = bytearray(batch(["a"]))
    torn[-1] ^= 1
    with pytest.raises(InvalidBatch):
        await log.append_as_leader(bytes(torn), 0)
    assert log.log_end_offset == 0


async def test_a_segment_is_rolled_by_size():
    one = len(batch(["x" * 100]))
    log = Place(segment_bytes=3 * one).open()
    for i in range(7):
        await append(log, "x" * 100)
        assert log.segments.active.base_offset == i // 3 * 3
    assert [segment.size for segment in log.segments] == [3 * one, 3 * one, one]
    assert log.size == 7 * one
    assert len(read_all(log)) == 7


async def test_a_segment_is_rolled_when_a_byte_is_missing():
    one = len(batch(["x" * 100]))
    log = Place(segment_bytes=3 * one - 1).open()
    for _ in range(4):
        await append(log, "x" * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


async def test_a_segment_is_rolled_by_the_time_of_its_records():
    log = Place(segment_ms=1000).open()
    await append(log, "a", timestamp=T0)
    await append(log, "b", timestamp=T0 + 1000)
    assert len(log.segments) == 1
    await append(log, "c", timestamp=T0 + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    await append(log, "d", timestamp=T0 + 5)
    assert len(log.segments) == 2


async def test_jitter_rolls_earlier():
    log = Place(segment_ms=1000, segment_jitter_ms=500).open()
    log.roll()
    await append(log, "a")
    log.roll()
    jitter = log.segments.active.roll_jitter_ms
    assert 0 < jitter < 500
    await append(log, "b", timestamp=T0)
    await append(log, "c", timestamp=T0 + 1000 - jitter)
    assert len(log.segments) == 2
    await append(log, "d", timestamp=T0 + 1001 - jitter)
    assert len(log.segments) == 3


async def test_the_first_segment_has_its_jitter_too():
    place = Place(segment_ms=1000, segment_jitter_ms=500)
    log = place.open()
    assert 0 < log.segments.active.roll_jitter_ms < 500
    await append(log, "a")
    await log.close()
    assert 0 < place.open().segments.active.roll_jitter_ms < 500


async def test_a_full_index_rolls():
    log = Place(index_interval_bytes=0, segment_index_bytes=48).open()
    for i in range(20):
        await append(log, "a", timestamp=T0 + i)
    assert len(log.segments) > 3
    assert all(len(segment.indexes.times) <= 4 for segment in log.segments if segment.indexes)
    assert len(read_all(log)) == 20


async def test_a_roll_completes_the_files_and_leaves_a_snapshot():
    place = Place()
    log = place.open()
    assert log.roll().base_offset == 0  # an empty segment is not rolled
    await log.append_as_leader(idempotent(["a", "b"], 0), 0)
    log.roll()
    assert set(place.names()) >= {
        layout.segment_name(0, ".log"),
        layout.segment_name(0, ".index"),
        layout.segment_name(0, ".timeindex"),
        layout.segment_name(2, ".log"),
        layout.segment_name(2, ".snapshot"),
    }
    assert place.memory.file_size("/data/t-0/" + layout.segment_name(0, ".timeindex")) == 12
    assert log.recovery_point == 0
    await place.services.chores.finish_due()
    assert log.recovery_point == 2
    assert place.memory.read(f"/data/t-0/{layout.LEADER_EPOCHS}") == b"0\n1\n0 0\n"


async def test_a_duplicate_is_answered_with_what_it_was():
    log = Place().open()
    first = await log.append_as_leader(idempotent(["a", "b"], 0), 0)
    await append(log, "other")
    again = await log.append_as_leader(idempotent(["a", "b"], 0), 0)
    assert again.duplicate
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert log.log_end_offset == 3


async def test_a_refused_producer_changes_nothing():
    log = Place().open()
    await log.append_as_leader(idempotent(["a"], 0), 0)
    with pytest.raises(KafkaError) as refused:
        await log.append_as_leader(idempotent(["gap"], 5), 0)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await log.append_as_leader(idempotent(["b"], 1), 0)).first_offset == 1


@pytest.mark.parametrize("torn", [0, 1, 40])
async def test_a_full_disk_takes_the_dir_offline_and_leaves_the_log_as_it_was(torn):
    place = Place()
    log = place.open()
    await append(log, "a")
    size = place.memory.file_size("/data/t-0/" + layout.segment_name(0, ".log"))
    place.memory.fault = lambda operation, path, wanted: torn if operation == "write" else None
    with pytest.raises(KafkaError) as failed:
        await append(log, "b")
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "No space left" in str(failed.value)
    place.memory.fault = None
    assert place.memory.file_size("/data/t-0/" + layout.segment_name(0, ".log")) == size
    assert not log.log_dir.online
    for use in (lambda: log.read(0, 100), lambda: log.truncate_to(0), lambda: log.advance_log_start(0)):
        with pytest.raises(KafkaError) as offline:
            use()
        assert offline.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        await append(log, "c")
    assert read_all(place.open(clean=False)) == [(0, "a")]


async def test_a_failing_fsync_takes_the_dir_offline():
    place = Place(flush_messages=1)
    log = place.open()

    def fault(operation, path, size):
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    place.memory.fault = fault
    with pytest.raises(KafkaError) as failed:
        await append(log, "a")
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.log_dir.online


async def test_flush_messages():
    place = Place(flush_messages=3)
    log = place.open()
    await append(log, "a", "b")
    assert (log.unflushed, log.recovery_point) == (2, 0)
    await append(log, "c")
    assert (log.unflushed, log.recovery_point) == (0, 3)
    place.memory.lose_power()
    assert read_all(place.open(clean=False, recovery_point=3)) == [(0, "a"), (1, "b"), (2, "c")]


async def test_a_follower_keeps_offsets_and_epochs():
    log = Place(segment_bytes=400).open()
    blob = placed(5, ["a", "b"], epoch=2) + placed(9, ["c"], epoch=2) + placed(10, ["d" * 300], epoch=4)
    info = await log.append_as_follower(blob + placed(11, ["cut off"])[:-1])
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (5, 10, 11)
    assert read_all(log) == [(5, "a"), (6, "b"), (9, "c"), (10, "d" * 300)]
    assert log.epochs.entries() == [(2, 5), (4, 10)]
    assert [segment.base_offset for segment in log.segments] == [0, 10]


async def test_a_follower_refuses_what_does_not_fit():
    log = Place().open()
    await log.append_as_follower(placed(0, ["a"]))
    with pytest.raises(UnexpectedAppendOffset):
        await log.append_as_follower(placed(0, ["b"]))
    with pytest.raises(UnexpectedAppendOffset):
        await log.append_as_follower(placed(4, ["b"]) + placed(3, ["c"]))
    torn = bytearray(placed(1, ["b"]))
    torn[-1] ^= 1
    with pytest.raises(CorruptBatchError):
        await log.append_as_follower(bytes(torn))
    assert log.log_end_offset == 1
    info = await log.append_as_follower(b"")
    assert info.last_offset == 0


async def test_offsets_too_far_apart_for_one_segment():
    log = Place().open()
    far = 2**31 + 5
    await log.append_as_follower(placed(0, ["a"]) + placed(far, ["b"]))
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert read_all(log) == [(0, "a"), (far, "b")]


async def test_an_offset_is_too_far_for_a_segment_that_has_taken_several():
    log = Place().open()
    for offset in (0, 1, 2, 2**31 - 1):
        await log.append_as_follower(placed(offset, ["a"]))
    assert len(log.segments) == 1
    await log.append_as_follower(placed(2**31, ["b"]))
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]


async def test_what_is_written_has_a_right_checksum():
    log = Place().open()
    await append(log, "a", epoch=9)
    data = log.read(0, 1 << 20).slice.read()
    assert read_header(data).crc == read_header(batch(["a"])).crc


async def test_a_flush_that_waited_does_not_bring_back_older_leader_epochs():
    place = Place(flush_messages=1)
    log = place.open()
    await append(log, "a", epoch=1)
    log.roll()  # its flush waits
    await append(log, "b", epoch=2)
    await place.services.chores.finish_due()
    assert place.memory.read(f"/data/t-0/{layout.LEADER_EPOCHS}") == b"0\n2\n1 0\n2 1\n"
    await log.close()
    assert place.open().epochs.entries() == [(1, 0), (2, 1)]


async def test_aborted_transactions_of_a_flushed_segment_outlive_a_power_cut():
    place = Place()
    log = place.open()
    await log.append_as_leader(idempotent(["a"], 0, transactional=True), 0)
    await end_transaction(log, commit=False)
    log.roll()
    await append(log, "b")
    await log.flush()
    place.memory.lose_power()
    again = place.open(clean=False, recovery_point=log.recovery_point)
    assert [aborted.producer_id for aborted in again.aborted(0, again.read(0, 1000))] == [7]


async def test_a_deleted_segment_does_not_keep_a_flush_from_the_others():
    place = Place()
    log = place.open()
    for _ in range(3):
        await append(log, "a")
        log.roll()
    place.memory.remove("/data/t-0/" + layout.segment_name(0, ".index"))
    await log.flush()
    place.memory.lose_power()
    assert place.memory.file_size("/data/t-0/" + layout.segment_name(1, ".timeindex")) == 12
