"""The journal, looked through beside the partitions' folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cluster.stores.inspection import inspect_journal
from kwire.cluster.stores.journal import CLEAN, JOURNAL, image_line
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.ports.real_files import PosixFileSystem
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout
from kwire.storage.inspection.fault import Fault, Findings

ID, OTHER = bytes(range(16)), bytes(16)
LINE = image_line(MetadataImage(topics={"t": TopicImage("t", ID, (PartitionImage((1,), (1,), 1),))}))


def found(log_dir: Path, *folders: str) -> list[str]:
    told: list[Fault] = []
    paths = [str(log_dir / folder) for folder in folders]
    inspect_journal(PosixFileSystem(), [str(log_dir)], paths, Findings(told.append))
    return [str(fault).replace(f"{log_dir}/", "") for fault in told]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / JOURNAL).write_bytes(LINE)
    (tmp_path / "t-0").mkdir()
    identify(tmp_path, ID)
    return tmp_path


def identify(log_dir: Path, topic_id: bytes) -> None:
    data = checkpoints.encode_partition_metadata(uuids.to_text(topic_id))
    (log_dir / "t-0" / layout.PARTITION_METADATA).write_bytes(data)


def test_all_is_known(log_dir: Path) -> None:
    assert found(log_dir, "t-0") == []


def test_dirs_without_a_journal(tmp_path: Path) -> None:
    assert found(tmp_path, "t-0") == []


def test_topics_that_are_compacted(tmp_path: Path) -> None:
    configs = {("topic", name): {"cleanup.policy": name} for name in ("compact", "compact,delete", "delete")}
    topics = {name: TopicImage(name, name.encode().ljust(16), ()) for _, name in configs}
    (tmp_path / JOURNAL).write_bytes(image_line(MetadataImage(topics=topics, configs=configs)))
    findings = Findings(lambda fault: None)
    assert inspect_journal(PosixFileSystem(), [str(tmp_path)], [], findings) == {"compact", "compact,delete"}


def test_a_damaged_journal(log_dir: Path) -> None:
    (log_dir / JOURNAL).write_bytes(b"0" + LINE[1:])
    assert found(log_dir, "t-0") == [f"{JOURNAL}: is damaged at byte 0: put a backup in its place"]


def test_an_interrupted_write(log_dir: Path) -> None:
    (log_dir / JOURNAL).write_bytes(LINE + b"12345678 {")
    (said,) = found(log_dir, "t-0")
    assert said.startswith(f"{JOURNAL}: byte {len(LINE)}: note: an interrupted write")


def test_damage_after_a_stop_in_order_is_no_interrupted_write(log_dir: Path) -> None:
    (log_dir / JOURNAL).write_bytes(LINE + LINE[:-3])
    (log_dir / CLEAN).write_bytes(b"%d\n" % (2 * len(LINE) - 3))
    assert found(log_dir, "t-0") == [f"{JOURNAL}: is damaged at byte {len(LINE)}: put a backup in its place"]


def test_a_journal_that_lost_its_end(log_dir: Path) -> None:
    (log_dir / CLEAN).write_bytes(b"%d\n" % (len(LINE) + 1))
    (said,) = found(log_dir, "t-0")
    assert said.startswith(f"{JOURNAL}: has {len(LINE)} bytes, and had {len(LINE) + 1} when it was closed in order")


def test_partitions_that_it_does_not_know(log_dir: Path) -> None:
    said = f"note: {JOURNAL} has no such partition: the next start sets it aside"
    assert found(log_dir, "t-1", "u-0") == [f"t-1: {said}", f"u-0: {said}"]


def test_a_folder_of_another_topic_of_that_name(log_dir: Path) -> None:
    identify(log_dir, OTHER)
    (said,) = found(log_dir, "t-0")
    assert said.startswith(f"t-0/{layout.PARTITION_METADATA}: it is of topic id {uuids.to_text(OTHER)}, and ")
    (log_dir / "t-0" / layout.PARTITION_METADATA).write_bytes(b"rubbish")
    assert found(log_dir, "t-0") == []
