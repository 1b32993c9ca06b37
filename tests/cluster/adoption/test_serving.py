"""What was imported into several dirs, served by a broker that is given all of them, or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cluster.stores.journal import JOURNAL, replay
from kwire.protocol import uuids
from kwire.storage import checkpoints, layout
from kwire.testing.process import BrokerProcess
from tests.cluster.adoption.apache import NODE
from tests.cluster.adoption.test_carrying import make, run


@pytest.fixture
def targets(tmp_path: Path) -> tuple[Path, Path]:
    """orders-0 and prices-0 are in the first one, orders-1 is in the second."""
    found = tmp_path / "x", tmp_path / "y"
    run(make(tmp_path), *found)
    return found


def broker(*dirs: Path) -> BrokerProcess:
    arguments = [word for path in dirs[1:] for word in ("--data-dir", str(path))]
    return BrokerProcess({"node.id": NODE}, data_dir=dirs[0], arguments=arguments)


def consumed(bootstrap: str, partition: int) -> list[str]:
    words = ["consume", "orders", "--partition", str(partition), "--offset", "beginning", "--exit", "--format", "%s\n"]
    command = [sys.executable, "-m", "kwire", *words, "--bootstrap", bootstrap]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()


def test_the_metadata_name_all_dirs(targets: tuple[Path, Path]) -> None:
    image = replay("", (targets[0] / JOURNAL).read_bytes(), closed_in_order=True).image
    properties = [checkpoints.decode_meta_properties((each / layout.META_PROPERTIES).read_bytes()) for each in targets]
    assert image.brokers[NODE].log_dirs == tuple(uuids.from_text(each["directory.id"]) for each in properties)
    assert len(set(image.brokers[NODE].log_dirs)) == 2


def test_a_first_start_without_one_of_the_dirs(targets: tuple[Path, Path]) -> None:
    """Its partitions are not begun anew in the other one: they are there when the dir is."""
    x, y = targets
    with broker(x) as alone:
        assert consumed(alone.bootstrap, 0) == ["a", "b"]
        alone.stop()
        assert "nobody leads orders-1, whose logs were in a log dir that is gone" in alone.log.read_text()
    assert not (x / "orders-1").exists()
    with broker(x, y) as both:
        assert (consumed(both.bootstrap, 0), consumed(both.bootstrap, 1)) == (["a", "b"], ["c"])
        both.stop()
        assert "gone" not in both.log.read_text()
