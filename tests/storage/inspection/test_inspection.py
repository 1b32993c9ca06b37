"""Looking through log dirs: nothing is said of sound ones, and no damage is overlooked."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import pytest
import trio

from kwire.ports.real_files import PosixFileSystem, in_use
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.storage import checkpoints, layout
from kwire.storage.inspection.batches import batches
from kwire.storage.inspection.sizes import partition_sizes
from kwire.storage.producer_snapshot import decode_snapshot, encode_snapshot
from kwire.storage.reserve import PADDING
from tests.storage.inspection.house import build, looked_through
from tests.storage.support import batch

Change = Callable[[Path], None]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return trio.run(build, tmp_path / "data")


@pytest.fixture
def partition(log_dir: Path) -> Path:
    return log_dir / "t-0"


def texts(*paths: Path, deep: bool = False) -> list[str]:
    """What is found, without the folder that all tests have in common."""
    found, _ = looked_through(*paths, deep=deep)
    return [str(fault).replace(str(paths[0].parent), "") for fault in found]


def logs(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_dir(log_dir: Path, deep: bool) -> None:
    found, tally = looked_through(log_dir, deep=deep)
    assert found == []
    assert (tally.partitions, tally.segments) == (1, len(logs(log_dir / "t-0")))
    assert tally.segments == 3
    assert (tally.batches, tally.records) == (30, 30)
    assert tally.bytes == sum(path.stat().st_size for path in logs(log_dir / "t-0"))


def test_a_partition_alone(partition: Path) -> None:
    found, tally = looked_through(partition)
    assert (found, tally.partitions) == ([], 1)


async def test_a_dir_after_a_kill(tmp_path: Path) -> None:
    folder = await build(tmp_path / "data", clean=False)
    assert texts(folder) == []
    last = logs(folder / "t-0")[-1]
    with last.open("ab") as file:
        file.write(batch(["torn"])[:-10])
    (said,) = texts(folder)
    assert "note: a torn batch" in said
    assert "cut off by the next start" in said


def test_each_byte_counts(log_dir: Path) -> None:
    """Of segments and indexes, of snapshots and of aborted transactions, whatever is changed is found."""
    chooser = random.Random(7)
    files = [path for path in (log_dir / "t-0").iterdir() if path.stat().st_size and path.suffix in _BINARY]
    assert {path.suffix for path in files} == _BINARY
    for path in files:
        whole = path.read_bytes()
        for position in chooser.sample(range(len(whole)), min(len(whole), 40)):
            path.write_bytes(
                whole[:position] + bytes([whole[position] ^ 1 << chooser.randrange(8)]) + whole[position + 1 :]
            )
            found, tally = looked_through(log_dir)
            assert tally.faults, f"{path.name} byte {position}"
            assert any(path.stem in fault.path or "t-0" in fault.path for fault in found)
        path.write_bytes(whole)
    assert texts(log_dir) == []


_BINARY = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}


def test_a_wrong_checksum_is_told_with_its_place_and_the_rest_is_looked_at(partition: Path) -> None:
    first = logs(partition)[0]
    data = bytearray(first.read_bytes())
    second = read_header(data).size
    data[-1] ^= 1
    data[second - 1] ^= 1
    first.write_bytes(data)
    said = texts(partition)
    assert said[0] == f"/t-0/{first.name}: byte 0: the batch at offset 0 has a wrong checksum"
    assert len(said) == 2
    assert said[1].endswith("has a wrong checksum")


def test_what_is_cut_off_is_missed_by_the_checkpoints(log_dir: Path) -> None:
    logs(log_dir / "t-0")[-1].unlink()
    said = texts(log_dir)
    assert any("recovery-point-offset-checkpoint says 30, and the log ends at" in text for text in said)


def test_a_missing_segment_is_a_gap(log_dir: Path) -> None:
    for path in (log_dir / "t-0").glob(logs(log_dir / "t-0")[1].stem + ".*"):
        path.unlink()
    assert any("are missing before it" in text for text in texts(log_dir))


def test_compaction_leaves_gaps(log_dir: Path) -> None:
    for path in (log_dir / "t-0").glob(logs(log_dir / "t-0")[1].stem + ".*"):
        path.unlink()
    assert texts(log_dir)
    assert looked_through(log_dir, compacted=["t"])[0] == []
    (log_dir / layout.CLEANER_OFFSETS).write_bytes(checkpoints.encode_offsets({("t", 0): 0}))
    assert texts(log_dir) == []


def test_a_missing_index(partition: Path) -> None:
    index = logs(partition)[0].with_suffix(".index")
    index.unlink()
    assert texts(partition) == [f"/t-0/{index.name}: missing (a start builds it anew)"]


def test_a_snapshot_that_says_other_than_the_log(partition: Path) -> None:
    snapshot = sorted(partition.glob("*.snapshot"))[-1]
    entries = decode_snapshot(snapshot.read_bytes())
    entries[0].batches[0] = entries[0].batches[0]._replace(last_sequence=99)
    snapshot.write_bytes(encode_snapshot(entries))
    (said,) = texts(partition)
    assert "wrote sequence 99 at offset" in said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("leader-epoch-checkpoint", b"0\n1\n0 0\n", "is of leader epoch 2, leader-epoch-checkpoint says 0"),
        ("leader-epoch-checkpoint", b"0\n2\n3 0\n2 7\n", "epoch 2 at 7 follows 3 at 0"),
        ("leader-epoch-checkpoint", b"rubbish", "version 'rubbish' is not known"),
        ("partition.metadata", b"version: 0\n", "no topic id"),
        ("notes.txt", b"", "note: not a file of a log"),
        ("00000000000000000099.snapshot", encode_snapshot([]), "it is behind the end of the log, 30"),
        ("00000000000000000000.log.deleted", b"", "note: waits for its removal"),
        ("00000000000000000000.log.swap", b"", "note: an interrupted compaction"),
        ("00000000000000000000.index.cleaned", b"", "note: an unfinished compaction"),
        ("00000000000000000099.index", b"", "note: there is no segment to it"),
    ],
)
def test_small_files_of_a_partition(partition: Path, name: str, content: bytes, said: str) -> None:
    (partition / name).write_bytes(content)
    (found,) = texts(partition)
    assert said in found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone-3.0123456789abcdef0123456789abcdef-delete", "a deleted partition"),
        ("lost-3.0123456789abcdef0123456789abcdef-stray", "the cluster knew this partition no more"),
        ("next-3.0123456789abcdef0123456789abcdef-future", "on its way from another log dir"),
    ],
)
def test_folders_that_are_no_live_partition(log_dir: Path, name: str, said: str) -> None:
    (log_dir / name).mkdir()
    (found,) = texts(log_dir)
    assert said in found


def test_a_file_with_the_name_of_a_partition(log_dir: Path) -> None:
    (log_dir / "core-1234").touch()
    (found,) = texts(log_dir)
    assert "core-1234: note: not a folder" in found
    before = {size.topic for size in partition_sizes(PosixFileSystem(), str(log_dir))}
    assert before == {"t"}


def test_checkpoints_that_cannot_be_read_or_speak_of_others(log_dir: Path) -> None:
    (log_dir / layout.HIGH_WATERMARKS).write_bytes(b"rubbish")
    (log_dir / layout.LOG_START_OFFSETS).write_bytes(checkpoints.encode_offsets({("other", 0): 4}))
    first, second = sorted(texts(log_dir))
    assert "log-start-offset-checkpoint: note: it speaks of other-0, which is not there" in first
    assert "replication-offset-checkpoint: version 'rubbish' is not known" in second


def edited(data: bytes, **fields: int) -> bytes:
    header = read_header(data)._replace(**fields)
    return seal(header, data[HEADER_SIZE:]) + data[HEADER_SIZE:]


@pytest.mark.parametrize(
    ("data", "deep", "said"),
    [
        (edited(batch(["a", "b"]), count=3), False, "3 records on 2 offsets"),
        (edited(batch(["a", "b"]), count=1), False, "1 records on 2 offsets"),
        (edited(batch(["a"]), attributes=7), False, "compression type 7 is not known"),
        (edited(batch(["a"]), attributes=0x100), False, "note: the batch at offset 0: attributes 0x0100 are not known"),
        (
            edited(batch(["a"]), attributes=0x10),
            False,
            "note: the batch at offset 0: a transaction without a producer id",
        ),
        (
            edited(batch(["a"]), producer_id=4, producer_epoch=-1),
            False,
            "note: the batch at offset 0: producer 4 with epoch -1",
        ),
        (edited(batch(["a"]), max_timestamp=-2), False, "max timestamp -2"),
        (edited(batch(["a", "b"]), max_timestamp=5), True, "the newest record is of"),
        (edited(batch(["a", "b"]), attributes=int(Compression.GZIP)), True, "the batch at offset 0: "),
        (batch(["a"])[:16] + b"\1" + batch(["a"])[17:], False, "no batch of format v2 (magic 1"),
        (batch(["a"]) + bytes(100), False, None),
        (batch(["a"]) + PADDING * 10 + bytes(100), False, None),
        (batch(["a"]) + PADDING * 100 + b"a", False, "no batch of format v2 (magic 127"),
        (batch(["a"]) + batch(["a"]), False, "offset 0 comes after offset 0"),
    ],
)
def test_what_a_batch_must_not_be(tmp_path: Path, data: bytes, deep: bool, said: str | None) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(data)
    found = texts(folder, deep=deep)
    assert [said is not None and said in text for text in found] == [True] * (said is not None)
    if deep:
        assert texts(folder) == [], "only a look at the records tells"


@contextmanager
def at_work(log_dir: Path) -> Iterator[None]:
    """Another process holds the dir's lock, as a broker does."""
    lock = str(log_dir / layout.LOCK)
    program = f"from kwire.ports.real_files import *; lock = PosixFileSystem().lock({lock!r}); print(); input()"
    holder = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate("\n")


def test_a_lock_is_seen(log_dir: Path) -> None:
    lock = str(log_dir / layout.LOCK)
    assert not in_use(lock)
    with at_work(log_dir):
        assert in_use(lock)
    assert not in_use(lock)
    assert not in_use(str(log_dir / "none"))


@pytest.mark.parametrize("there", [20, 80])
def test_what_a_broker_at_work_has_written_half_into_a_reserve(log_dir: Path, there: int) -> None:
    *_, last = logs(log_dir / "t-0")
    data = last.read_bytes()
    last.write_bytes(data + batch(["a", "b" * 100])[:there] + PADDING * 1000)
    (said,) = texts(log_dir)
    assert "note" not in said
    with at_work(log_dir):
        said = texts(log_dir)[-1]
        assert f"byte {len(data)}: note: " in said
        assert "being written" in said


@pytest.mark.parametrize("there", [0, 20, 80])
def test_what_is_written_into_a_reserve_meanwhile(tmp_path: Path, there: int) -> None:
    """Between two reads of who looks at it."""
    first, second = batch(["a"]), batch(["b" * 100])
    path = tmp_path / "0.log"
    path.write_bytes(first + second[:there] + PADDING * 3000)

    class Written(FileIO):
        def read(self, size: int = -1) -> bytes:
            data = super().read(size)
            with path.open("r+b") as file:
                file.seek(len(first))
                file.write(second * 3)
            return data

    with Written(path) as file:
        found = [bytes(data) for _, _, data in batches(file, path.stat().st_size)]
    assert found in ([first], [first, second, second, second])
    assert found[1:] or not there


def test_while_a_broker_is_at_work_only_batches_are_looked_at(log_dir: Path) -> None:
    """Whatever else is not as it should be may be so because it has just been changed."""
    first, second, last = logs(log_dir / "t-0")
    first.with_suffix(".index").unlink()
    second.unlink()
    for snapshot in (log_dir / "t-0").glob("*.snapshot"):
        snapshot.write_bytes(b"half of it")
    for name in (layout.PARTITION_METADATA, layout.LEADER_EPOCHS):
        (log_dir / "t-0" / name).write_bytes(b"")  # it has just been made
    last.write_bytes(last.read_bytes()[:-3])
    last.with_suffix(".log.deleted").touch()
    with at_work(log_dir):
        said = texts(log_dir)
        assert not any("deleted" in text for text in said)
        assert all(": note: " in text for text in said)
        assert "being written" in said[-1]
        data = bytearray(first.read_bytes())
        data[100] ^= 1
        first.write_bytes(data)
        assert any("has a wrong checksum" in text for text in texts(log_dir))
