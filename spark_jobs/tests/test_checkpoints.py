"""A checkpoint is of one job, for what it was begun with."""

from __future__ import annotations

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
