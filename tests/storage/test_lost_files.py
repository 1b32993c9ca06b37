"""Files that are missing, empty or full of rubbish cost what only they said, and nothing else."""

from __future__ import annotations

import pytest
import trio

from kwire.storage import layout
from kwire.storage.cleaning.log_cleaner import LogCleaner
from kwire.storage.upkeep import Upkeep

from .house import House
from .support import ROOT, T0, TOPIC_ID, append, config, end_transaction, idempotent, read_all, run

FOLDER = f"{ROOT}/t-0"
RUBBISH = [None, b"", bytes(40), b"\xff" * 47, b"0\n1\n", b"99\nrubbish"]
"""What takes the place of a file's content; None takes the file away."""

rubbish = pytest.mark.parametrize("content", RUBBISH, ids=["missing", "empty", "zeros", "ones", "torn", "text"])
stops = pytest.mark.parametrize("how", ["stopped", "killed"])


class Left:
    """A log of several segments, with an aborted transaction in the first, that a broker has left."""

    def __init__(self, how: str) -> None:
        self.house = House(transaction_partition_verification_enable="false")
        self.house.topics["t"] = config(segment_bytes=400, index_interval_bytes=0)
        run(self._fill, how)

    async def _fill(self, how: str) -> None:
        managed = await self.house.start()
        log = await managed.get_or_create("t", 0, TOPIC_ID, self.house.topics["t"])
        await log.append_as_leader(idempotent(["a"], 0, transactional=True), 1)
        await end_transaction(log, commit=False, epoch=1)
        for number in range(20):
            await append(log, f"{number}", timestamp=T0 + number, epoch=1 + number // 7)
        await log.append_as_leader(idempotent(["b"], 1), 3)
        log.set_high_watermark(log.log_end_offset)
        self.records = read_all(log)
        self.epochs = log.epochs.entries()
        self.bases = [segment.base_offset for segment in log.segments]
        self.end = log.log_end_offset
        await log.flush()
        if how == "stopped":
            await self.house.stop(managed)
        else:
            await Upkeep(managed).write_recovery_points()
            self.house.kill()

    def spoil(self, path: str, content: bytes | None) -> None:
        files = self.house.files
        if files.exists(path):
            files.remove(path)
        if content is not None:
            files.write(path, content)

    def start(self):
        managed = run(self.house.start)
        log = managed.logs["t", 0]
        log.set_high_watermark(log.log_end_offset)
        return log

    def check(self, log) -> None:
        assert read_all(log) == self.records
        assert log.log_end_offset == self.end
        assert log.epochs.entries() == self.epochs
        assert [txn.producer_id for txn in log.aborted(0, log.read(0, 1000))] == [7]
        assert log.producer_state.entries[7].last_sequence == 1
        assert run(log.offset_for_timestamp, T0 + 10).offset == 12
        assert run(append, log, "more") == self.end


@stops
@rubbish
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_files_beside_the_segments(how, content, suffix):
    left = Left(how)
    names = [name for name in left.house.files.list(FOLDER) if name.endswith(suffix)]
    assert names
    if suffix == ".snapshot" and content is None:
        names = names[-1:]  # without any there is nobody to remember, here as with Apache Kafka
    for name in names:
        if suffix == ".txnindex" and not content:
            continue  # so it is where nothing was aborted
        left.spoil(f"{FOLDER}/{name}", content)
    left.check(left.start())


@stops
@rubbish
@pytest.mark.parametrize("name", [layout.LEADER_EPOCHS, layout.PARTITION_METADATA])
def test_files_of_a_partition(how, content, name, caplog):
    left = Left(how)
    left.spoil(f"{FOLDER}/{name}", content)
    left.check(left.start())


@stops
@rubbish
@pytest.mark.parametrize(
    "name", [layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS, layout.CLEANER_OFFSETS]
)
def test_checkpoints_of_a_dir(how, content, name):
    left = Left(how)
    left.spoil(f"{ROOT}/{name}", content)
    left.check(left.start())


@stops
def test_a_missing_segment_amid_the_log(how, caplog):
    left = Left(how)
    gone, end = left.bases[2], left.bases[3]
    for name in left.house.files.list(FOLDER):
        if name.startswith(f"{gone:020d}"):
            left.house.files.remove(f"{FOLDER}/{name}")
    log = left.start()
    assert read_all(log) == [record for record in left.records if not gone <= record[0] < end]
    assert log.log_end_offset == left.end
    assert read_all(log, gone)[0][0] == end


@stops
def test_a_missing_first_segment(how):
    left = Left(how)
    for name in left.house.files.list(FOLDER):
        if name.startswith(f"{0:020d}"):
            left.house.files.remove(f"{FOLDER}/{name}")
    log = left.start()
    assert log.log_start_offset == left.bases[1]
    assert read_all(log) == [record for record in left.records if record[0] >= left.bases[1]]
    assert run(append, log, "more") == left.end


@stops
def test_an_empty_segment_amid_the_log(how):
    left = Left(how)
    empty, end = left.bases[2], left.bases[3]
    left.spoil(f"{FOLDER}/{layout.segment_name(empty, '.log')}", b"")
    log = left.start()
    assert read_all(log) == [record for record in left.records if not empty <= record[0] < end]
    assert log.log_end_offset == left.end


@stops
@pytest.mark.parametrize("zeros", [1, 61, 5000])
def test_zeros_behind_the_last_batch(how, zeros):
    """A power cut leaves them where the size of a file had reached the disk before its content."""
    left = Left(how)
    path = f"{FOLDER}/{layout.segment_name(left.bases[-1], '.log')}"
    size = left.house.files.file_size(path)
    left.house.files.open(path).truncate(size + zeros)
    log = left.start()
    left.check(log)


def test_the_cleaner_names_the_place_of_what_it_cannot_clean(caplog):
    house = House()
    house.topics["t"] = config(cleanup_policy=frozenset({"compact"}), segment_bytes=400, min_cleanable_dirty_ratio=0.0)

    async def damaged_and_cleaned():
        managed = await house.start()
        log = await managed.get_or_create("t", 0, TOPIC_ID, house.topics["t"])
        for number in range(12):
            await append(log, f"{number}")
        log.roll()
        log.set_high_watermark(log.log_end_offset)
        position = log.segments[1].find(log.segments[1].base_offset + 1)[0]
        file = log.segments[1].file
        file.pwrite([bytes([file.pread(1, position + 65)[0] ^ 1])], position + 65)
        cleaner = LogCleaner(managed)
        with trio.move_on_after(5):
            await cleaner.clean(await cleaner.dirtiest())
        name = layout.segment_name(log.segments[1].base_offset, ".log")
        return f"{name} has no batch with a right checksum at byte {position}"

    assert run(damaged_and_cleaned) in caplog.text
