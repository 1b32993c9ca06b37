"""A checkpoint is of one job, for what it was begun with."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.checkpoints import FILE, claim
from spark_jobs.faults import Fault

BEGUN: dict[str, Any] = {"target": "copies", "--window": timedelta(hours=1), "--by": ("a", "b")}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """With which Spark began a query."""
    claim(tmp_path / "c", "windows", {"flights": "id-1"}, BEGUN)
    (tmp_path / "c" / "metadata").touch()
    return tmp_path / "c"


def test_it_goes_on_with_what_it_was_begun_with(checkpoint: Path) -> None:
    claim(checkpoint, "windows", {"flights": "id-1"}, BEGUN)


@pytest.mark.parametrize(
    ("job", "topics", "meaning", "line"),
    [
        ("mirror", {"flights": "id-1"}, BEGUN, "is a checkpoint of windows"),
        ("windows", {"weather": "id-2"}, BEGUN, "is for flights, not for weather"),
        ("windows", {"flights": "id-3"}, BEGUN, "flights was made anew since"),
        ("windows", {"flights": "id-1"}, BEGUN | {"target": "more"}, "is for target copies, not more"),
        ("windows", {"flights": "id-1"}, BEGUN | {"--window": None}, "is for --window 1:00:00, not none"),
        ("windows", {"flights": "id-1"}, BEGUN | {"--by": ("a",)}, "is for --by a, b, not a"),
    ],
)
def test_what_it_is_not_for(
    checkpoint: Path, job: str, topics: dict[str, str], meaning: dict[str, Any], line: str
) -> None:
    with pytest.raises(Fault, match=line):
        claim(checkpoint, job, topics, meaning)


def test_clusters_are_known_by_their_ids(tmp_path: Path) -> None:
    def begin(topic_id: str, **clusters: str | None) -> None:
        claim(tmp_path, "mirror", {"flights": topic_id}, {"target": "copies"}, clusters)

    begin("id-1", cluster="here", target="there")
    (tmp_path / "metadata").touch()
    begin("id-1", cluster="here", target="there")
    # Who can't tell his cluster's id is believed.
    begin("id-1", cluster=None, target="there")
    with pytest.raises(Fault, match=f"^{tmp_path} is for another target, there, not elsewhere: give another one$"):
        begin("id-1", cluster="here", target="elsewhere")
    with pytest.raises(Fault, match="is for another cluster, here, not elsewhere"):
        begin("id-2", cluster="elsewhere", target="there")


def test_one_of_before_clusters_were_noted_goes_on_and_learns_them(checkpoint: Path) -> None:
    old = json.loads((checkpoint / FILE).read_text())
    del old["clusters"]
    (checkpoint / FILE).write_text(json.dumps(old))
    claim(checkpoint, "windows", {"flights": "id-1"}, BEGUN, {"cluster": "here"})
    with pytest.raises(Fault, match="is for another cluster, here, not there"):
        claim(checkpoint, "windows", {"flights": "id-1"}, BEGUN, {"cluster": "there"})
    claim(checkpoint, "windows", {"flights": "id-1"}, BEGUN, {"cluster": "here"})


def test_one_that_no_job_claimed(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(Fault, match="not of a job like this"):
        claim(tmp_path, "windows", {}, {})


def test_what_never_began_binds_nobody(tmp_path: Path) -> None:
    claim(tmp_path, "windows", {}, {"target": "typo"})
    claim(tmp_path, "windows", {}, {"target": "right"})
    assert '"right"' in (tmp_path / FILE).read_text()


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Fault, match="file/c: Not a directory"):
        claim(tmp_path / "file" / "c", "windows", {}, {})
