"""`kwire export` from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kwire.cluster.stores.journal import JOURNAL, image_line
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.storage import layout
from tests.cluster.adoption.apache import ApacheDirs, an_id, topic
from tests.storage.inspection.house import build


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = trio.run(build, tmp_path / "kwire")
    image = MetadataImage(version=1, topics={"t": TopicImage("t", an_id(9), (PartitionImage((1,), (1,), 1),))})
    (folder / JOURNAL).write_bytes(image_line(image))
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The empty segment of the topic in Apache Kafka."""
    dirs = ApacheDirs(tmp_path)
    dirs.log(*topic("t", 1))
    path = dirs.partition("t", 1) / layout.segment_name(0, layout.LOG)
    path.write_bytes(b"")
    return path


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_topic(kwire, own: Path, log: Path, dry_run: bool) -> None:
    target = str(log.parent.parent)
    result = kwire("export", "t", "--data-dir", str(own), "--to", target, *(["--dry-run"] if dry_run else []))
    assert (result.exit_code, result.stderr) == (0, "")
    first, last = result.stdout.splitlines()
    assert first == f"t-0: 3.8 KiB to {target}"
    assert last == "1 partitions, 3.8 KiB" + (": nothing was done yet" if dry_run else "")
    assert (log.stat().st_size == 0) == dry_run


def test_what_is_refused_is_one_line(kwire, own: Path, log: Path) -> None:
    result = kwire("export", "other", "--data-dir", str(own), "--to", str(log.parent.parent))
    assert (result.exit_code, result.stderr) == (1, "kwire: kwire has no topic other\n")
