"""Topics on their way back to Apache Kafka: what has to be there, and what the files say afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.returning import Return, put_back
from kwire.cluster.adoption.taking import plan_export
from kwire.cluster.stores.journal import JOURNAL, image_line
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.ports.randomness import SeededRandomness
from kwire.protocol import uuids
from kwire.protocol.records.header import iter_batches
from kwire.storage import checkpoints, layout
from kwire.storage.producer_entry import ProducerEntry
from kwire.storage.producer_snapshot import encode_snapshot
from tests.cluster.adoption.apache import FILES, ApacheDirs, an_id, topic
from tests.cluster.adoption.test_carrying import DyingFiles, killable
from tests.storage.inspection.house import build, looked_through

PARTITION = PartitionImage((1,), (1,), 1)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """kwire's data dir with the topic t, in leader epochs 0 and 2."""
    folder = trio.run(build, tmp_path / "kwire")
    image = MetadataImage(
        version=1,
        topics={"t": TopicImage("t", an_id(9), (PARTITION,))},
        configs={("topic", "t"): {"retention.ms": "-1"}},
    )
    (folder / JOURNAL).write_bytes(image_line(image))
    return folder


@pytest.fixture
def dirs(tmp_path: Path) -> ApacheDirs:
    found = ApacheDirs(tmp_path, 2)
    found.log(*topic("t", 1, directories=[found.dir_id(1)]), *topic("other", 2))
    found.partition("other", 2)
    empty(found)
    (found.paths[1] / layout.RECOVERY_POINTS).write_bytes(checkpoints.encode_offsets({("x", 0): 8, ("t", 0): 0}))
    return found


def empty(dirs: ApacheDirs) -> Path:
    """The partition as Apache Kafka creates it."""
    folder = dirs.partition("t", 1, in_dir=1)
    (folder / layout.segment_name(0, layout.LOG)).write_bytes(b"")
    return folder


def planned(own: Path, dirs: ApacheDirs, *topics: str) -> list[Return]:
    return plan_export(FILES, [str(own)], topics or ("t",), dirs.names)


def run(own: Path, dirs: ApacheDirs, files: DyingFiles | None = None) -> None:
    returns = planned(own, dirs)
    put_back(files or DyingFiles(), [str(own)], returns, SeededRandomness(3).uuid, lambda done: None)


def epochs(folder: Path) -> set[int]:
    return {header.leader_epoch for path in folder.glob("*.log") for header, _ in iter_batches(path.read_bytes())}


def test_a_topic(own: Path, dirs: ApacheDirs) -> None:
    before = {path.name: path.read_bytes() for path in (own / "t-0").iterdir()}
    run(own, dirs)
    folder = dirs.paths[1] / "t-0"
    assert (epochs(own / "t-0"), epochs(folder)) == ({0, 2}, {0})
    assert checkpoints.decode_epochs((folder / layout.LEADER_EPOCHS).read_bytes()) == [(0, 0)]
    id_text = checkpoints.decode_partition_metadata((folder / layout.PARTITION_METADATA).read_bytes())
    assert uuids.from_text(id_text) == an_id(1)
    assert not list(folder.glob("*.snapshot"))
    assert list(folder.glob("*.txnindex"))
    points = checkpoints.decode_offsets((dirs.paths[1] / layout.RECOVERY_POINTS).read_bytes())
    assert points == {("x", 0): 8, ("t", 0): 30}
    found, tally = looked_through(dirs.paths[1], deep=True)
    assert [fault for fault in found if fault.serious] == []
    assert tally.batches == 30
    assert before == {path.name: path.read_bytes() for path in (own / "t-0").iterdir()}, "kwire's own are as they were"


def test_killed_at_any_step_it_can_be_run_again(own: Path, dirs: ApacheDirs) -> None:
    """And whatever lies there meanwhile is empty, or whole, or has a name that Apache Kafka removes at its start."""
    folder = dirs.paths[1] / "t-0"
    for changes in range(20):
        with killable() as killed:
            run(own, dirs, DyingFiles(changes))
        if not killed or epochs(folder):
            break
        names = {path.name for path in dirs.paths[1].iterdir() if path.is_dir() and path != folder}
        assert all(name.endswith(layout.DELETE_DIR) for name in names)
    assert changes > 3
    assert epochs(folder) == {0}


def without_clean_stop_of_kwire(own: Path, dirs: ApacheDirs) -> None:
    (own / layout.CLEAN_SHUTDOWN).unlink()


def without_clean_stop_of_apache_kafka(own: Path, dirs: ApacheDirs) -> None:
    (dirs.paths[1] / layout.CLEAN_SHUTDOWN).unlink()


def without_journal(own: Path, dirs: ApacheDirs) -> None:
    (own / JOURNAL).unlink()


def with_a_damaged_journal(own: Path, dirs: ApacheDirs) -> None:
    (own / JOURNAL).write_bytes(b"rubbish\n")


def not_created(own: Path, dirs: ApacheDirs) -> None:
    dirs.log(*topic("other", 2))


def with_more_partitions(own: Path, dirs: ApacheDirs) -> None:
    dirs.log(*topic("t", 1, 2))


def with_two_replicas(own: Path, dirs: ApacheDirs) -> None:
    dirs.log(*topic("t", 1, replicas=[3, 4]))


def with_records(own: Path, dirs: ApacheDirs) -> None:
    (dirs.paths[1] / "t-0" / layout.segment_name(0, layout.LOG)).write_bytes(b"x")


def in_another_dir(own: Path, dirs: ApacheDirs) -> None:
    dirs.log(*topic("t", 1, directories=[an_id(0xEE)]))
    for path in (dirs.paths[1] / "t-0").iterdir():
        path.unlink()
    (dirs.paths[1] / "t-0").rmdir()


def with_an_open_transaction(own: Path, dirs: ApacheDirs) -> None:
    entry = ProducerEntry(7, 0, 0, 5, 12)
    (own / "t-0" / layout.segment_name(30, layout.SNAPSHOT)).write_bytes(encode_snapshot([entry]))


def with_a_damaged_snapshot(own: Path, dirs: ApacheDirs) -> None:
    (own / "t-0" / layout.segment_name(30, layout.SNAPSHOT)).write_bytes(b"rubbish")


def with_a_damaged_checkpoint(own: Path, dirs: ApacheDirs) -> None:
    (own / layout.RECOVERY_POINTS).write_bytes(b"rubbish\n")


def without_the_partition(own: Path, dirs: ApacheDirs) -> None:
    (own / "t-0").rename(own / "u-0")


def with_tiers(own: Path, dirs: ApacheDirs) -> None:
    topics = {"t": TopicImage("t", an_id(9), (PARTITION,))}
    configs = {("topic", "t"): {"remote.storage.enable": "true"}}
    (own / JOURNAL).write_bytes(image_line(MetadataImage(version=1, topics=topics, configs=configs)))


def with_kwire_at_work(own: Path, dirs: ApacheDirs) -> None:
    LOCKS.append(FILES.lock(f"{own}/{layout.LOCK}"))


LOCKS: list[object] = []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_clean_stop_of_kwire, "was not left by a clean stop of kwire"),
        (without_clean_stop_of_apache_kafka, "was not left by a clean stop: start Apache Kafka there"),
        (without_journal, "kwire-metadata.journal is missing"),
        (with_a_damaged_journal, "is damaged at byte 0"),
        (
            not_created,
            "t is not there: create it (kafka-topics.sh --create --topic t --partitions 1 --config retention.ms=-1)",
        ),
        (with_more_partitions, "topic t has 2 partitions there, and 1 in kwire"),
        (with_two_replicas, "t-0 has its replicas on brokers 3, 4"),
        (with_records, "has records already"),
        (in_another_dir, "t-0 is in a log dir of Apache Kafka that is not given"),
        (with_an_open_transaction, "has an open transaction of producer 7"),
        (with_a_damaged_snapshot, "too short"),
        (with_a_damaged_checkpoint, "recovery-point-offset-checkpoint: version 'rubbish' is not known"),
        (without_the_partition, "t-0 is in none of"),
        (with_tiers, "topic t is tiered"),
        (with_kwire_at_work, "is in use by a broker: stop it first"),
    ],
)
def test_what_stands_in_the_way(
    own: Path, dirs: ApacheDirs, change: Callable[[Path, ApacheDirs], None], said: str
) -> None:
    change(own, dirs)
    with pytest.raises(AdoptionError) as caught:
        planned(own, dirs)
    assert said in str(caught.value)
    LOCKS.clear()


def test_an_unknown_topic(own: Path, dirs: ApacheDirs) -> None:
    with pytest.raises(AdoptionError, match="kwire has no topic u"):
        planned(own, dirs, "u")


def test_a_damaged_segment_is_not_put_back(own: Path, dirs: ApacheDirs) -> None:
    path = next((own / "t-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AdoptionError, match="a torn batch"):
        run(own, dirs)
    assert not epochs(dirs.paths[1] / "t-0")


def two_partitions(own: Path, folder: Path) -> tuple[Path, ApacheDirs]:
    """A copy of kwire's data dir with two partitions of t, and an Apache Kafka that has them empty."""
    copied = Path(shutil.copytree(own, folder / "kwire"))
    shutil.copytree(own / "t-0", copied / "t-1")
    (copied / layout.RECOVERY_POINTS).write_bytes(checkpoints.encode_offsets({("t", 0): 30, ("t", 1): 30}))
    topics = {"t": TopicImage("t", an_id(9), (PARTITION, PARTITION))}
    (copied / JOURNAL).write_bytes(image_line(MetadataImage(version=1, topics=topics)))
    dirs = ApacheDirs(folder)
    dirs.log(*topic("t", 1, 2))
    for index in (0, 1):
        (dirs.partition("t", 1, index) / layout.segment_name(0, layout.LOG)).write_bytes(b"")
    return copied, dirs


def test_killed_amid_several_partitions_it_goes_on(own: Path, tmp_path: Path) -> None:
    gone_on = 0
    for changes in range(30):
        copied, dirs = two_partitions(own, tmp_path / str(changes))
        with killable() as killed:
            run(copied, dirs, DyingFiles(changes))
        before = [bool(epochs(dirs.paths[0] / f"t-{index}")) for index in (0, 1)]
        assert [each.there for each in planned(copied, dirs)] == before
        gone_on += before == [True, False]
        run(copied, dirs)
        assert [epochs(dirs.paths[0] / f"t-{index}") for index in (0, 1)] == [{0}, {0}]
        found, tally = looked_through(dirs.paths[0] / "t-0", dirs.paths[0] / "t-1", deep=True)
        assert [fault for fault in found if fault.serious] == []
        assert tally.batches == 60
        points = checkpoints.decode_offsets((dirs.paths[0] / layout.RECOVERY_POINTS).read_bytes())
        assert points == {("t", 0): 30, ("t", 1): 30}
        if not killed:
            break
    assert not killed
    assert gone_on


def cut_off(folder: Path) -> None:
    last = max(folder.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])


def another_record(folder: Path) -> None:
    last = max(folder.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1] + b"!")


def another_segment(folder: Path) -> None:
    (folder / layout.segment_name(30, layout.LOG)).write_bytes(b"x")


def another_topic(folder: Path) -> None:
    text = checkpoints.encode_partition_metadata(uuids.to_text(an_id(5)))
    (folder / layout.PARTITION_METADATA).write_bytes(text)


def another_epoch(folder: Path) -> None:
    first = min(folder.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[15] = 1
    first.write_bytes(data)


@pytest.mark.parametrize("change", [cut_off, another_record, another_segment, another_topic, another_epoch])
def test_what_apache_kafka_has_is_never_written_over(
    own: Path, dirs: ApacheDirs, change: Callable[[Path], None]
) -> None:
    run(own, dirs)
    folder = dirs.paths[1] / "t-0"
    change(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(AdoptionError, match="t-0 has records already"):
        run(own, dirs)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_records_that_came_after_the_plan_was_made(own: Path, dirs: ApacheDirs) -> None:
    returns = planned(own, dirs)
    with_records(own, dirs)
    with pytest.raises(AdoptionError, match="t-0 has records already"):
        put_back(FILES, [str(own)], returns, SeededRandomness(3).uuid, lambda done: None)
    assert (dirs.paths[1] / "t-0" / layout.segment_name(0, layout.LOG)).read_bytes() == b"x"
