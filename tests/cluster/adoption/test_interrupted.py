"""An import that runs again after an interruption: what it removes is what the first run wrote, and nothing else."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.carrying import carry_out
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.taking import plan_import
from kwire.ports.randomness import SeededRandomness
from kwire.storage import checkpoints, layout
from tests.cluster.adoption.apache import CLUSTER, FILES, NODE, ApacheDirs
from tests.cluster.adoption.test_carrying import VALUES, DyingFiles, killable, make, run, served

SEGMENT = layout.segment_name(0, layout.LOG)


def contents(folder: Path) -> dict[str, bytes]:
    """Of all files but the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != layout.LOCK]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def interrupted(folder: Path, changes: int, mode: Mode) -> tuple[ApacheDirs, Path, Path] | None:
    """An import into x and y that was killed after so many changes; None where that was its end."""
    dirs, x, y = make(folder), folder / "x", folder / "y"
    with killable() as killed:
        run(dirs, x, y, mode=mode, files=DyingFiles(changes))
    return (dirs, x, y) if killed else None


def just_before_its_last_step(folder: Path, mode: Mode = Mode.COPY) -> tuple[ApacheDirs, Path, Path]:
    """The mark of y has gone, that of x is there."""
    left = interrupted(folder, _changes(mode) - 1, mode)
    assert left is not None
    dirs, x, y = left
    assert (x / layout.UNFINISHED_IMPORT).exists()
    assert (y / layout.META_PROPERTIES).exists()
    assert not (y / layout.UNFINISHED_IMPORT).exists()
    return dirs, x, y


@cache
def _changes(mode: Mode) -> int:
    """That a whole import makes."""
    files = DyingFiles()
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(make(folder), folder / "x", folder / "y", mode=mode, files=files)
    return DyingFiles().left - files.left


def of_somebody_else(folder: Path) -> dict[str, bytes]:
    """An older broker of the same cluster, with a partition of the same name."""
    (folder / "orders-1").mkdir(parents=True)
    (folder / "orders-1" / SEGMENT).write_text("to keep")
    meta = {"version": "1", "cluster.id": CLUSTER, "node.id": str(NODE), "directory.id": "mKH3c3eAQGuF4hD6w3yq9Q"}
    (folder / layout.META_PROPERTIES).write_bytes(checkpoints.encode_meta_properties(meta))
    return contents(folder)


@pytest.mark.parametrize("mode", [Mode.COPY, Mode.MOVE])
def test_a_volume_that_is_mounted_later_keeps_what_it_has(tmp_path: Path, mode: Mode) -> None:
    for changes in range(100):
        left = interrupted(tmp_path / str(changes), changes, mode)
        if left is None:
            break
        dirs, x, y = left
        if y.exists():
            y.rename(y.with_name("below the mount"))
        kept = of_somebody_else(y)
        for _ in range(2):
            with pytest.raises(AdoptionError, match="y is not empty"):
                run(dirs, x, y, mode=mode)
            assert contents(y) == kept
        shutil.rmtree(tmp_path / str(changes))
    assert changes > 15


def test_a_volume_that_is_not_mounted_any_more_amid_a_move(tmp_path: Path) -> None:
    """Its partitions would be taken for such that were never written to."""
    dirs, x, y = just_before_its_last_step(tmp_path, Mode.MOVE)
    y.rename(y.with_name("elsewhere"))
    with pytest.raises(AdoptionError, match=r"orders-1 was being moved to .*/y, and is not there any more: .*mounted"):
        run(dirs, x, y, mode=Mode.MOVE)
    y.with_name("elsewhere").rename(y)
    run(dirs, x, y, mode=Mode.MOVE)
    assert trio.run(served, x, y) == VALUES


def test_a_refusal_leaves_no_mark(tmp_path: Path) -> None:
    dirs, x, y = make(tmp_path), tmp_path / "x", tmp_path / "y"
    plan = plan_import(FILES, dirs.names, [str(x), str(y)], Mode.COPY, skip_incomplete=False)
    kept = of_somebody_else(y)
    with pytest.raises(AdoptionError, match="y is not empty"):
        carry_out(FILES, plan, SeededRandomness(1).uuid, lambda count: None)
    assert (contents(x), contents(y)) == ({}, kept)
    with pytest.raises(AdoptionError, match="y is not empty"):
        run(dirs, x, y)
    assert contents(y) == kept


@pytest.mark.parametrize("name", ["letters", "valuable-0/" + SEGMENT, "orders-0.7d8X9wEhQ0iNjRJ6QKIW2A-delete/x"])
def test_what_came_to_an_unfinished_target_is_kept(tmp_path: Path, name: str) -> None:
    left = interrupted(tmp_path, 8, Mode.COPY)
    assert left is not None
    dirs, x, y = left
    (x / name).parent.mkdir(exist_ok=True)
    (x / name).write_text("to keep")
    before = contents(x)
    with pytest.raises(AdoptionError, match=f"x/{name.partition('/')[0]} is not of the import that was interrupted"):
        run(dirs, x, y)
    assert contents(x) == before


@pytest.mark.parametrize("name", ["letters", "kwire-metadata.journal", "orders-1/" + SEGMENT, "prices-9/" + SEGMENT])
def test_a_complete_target_that_was_changed_is_kept(tmp_path: Path, name: str) -> None:
    dirs, x, y = just_before_its_last_step(tmp_path)
    (y / name).parent.mkdir(exist_ok=True)
    with open(y / name, "ab") as file:
        file.write(b"to keep")
    before = contents(y)
    with pytest.raises(AdoptionError, match="y is not empty"):
        run(dirs, x, y)
    assert contents(y) == before


@pytest.mark.parametrize("mode", [Mode.COPY, Mode.MOVE])
def test_a_complete_target_is_gone_through_again_at_whatever_step_that_ends(tmp_path: Path, mode: Mode) -> None:
    for changes in range(100):
        folder = tmp_path / str(changes)
        dirs, x, y = just_before_its_last_step(folder, mode)
        targets = (x, y) if mode is Mode.MOVE else (y, x)  # a copy may begin anew in another order
        with killable() as killed:
            run(dirs, *targets, mode=mode, files=DyingFiles(changes))
        if not killed:
            break
        run(dirs, *targets, mode=mode, files=DyingFiles())
        assert trio.run(served, *targets) == VALUES
        shutil.rmtree(folder)
    assert changes > 10


def test_a_copy_that_becomes_a_move_at_whatever_step_that_ends(tmp_path: Path) -> None:
    """What was copied is not taken for what was moved."""
    for changes in range(100):
        folder = tmp_path / str(changes)
        left = interrupted(folder, 14, Mode.COPY)
        assert left is not None
        with killable() as killed:
            run(*left, mode=Mode.MOVE, files=DyingFiles(changes))
        if not killed:
            break
        if marked(*left[1:]):
            run(*left, mode=Mode.MOVE, files=DyingFiles())
        assert trio.run(served, *left[1:]) == VALUES
        shutil.rmtree(folder)
    assert changes > 10


def marked(*targets: Path) -> bool:
    return any((target / layout.UNFINISHED_IMPORT).exists() for target in targets)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"{", b"[]", b'{"mode": "copy"}', b'{"mode": "steal", "sources": [], "targets": []}']
)
def test_a_damaged_mark(tmp_path: Path, content: bytes) -> None:
    left = interrupted(tmp_path, 8, Mode.COPY)
    assert left is not None
    (left[1] / layout.UNFINISHED_IMPORT).write_bytes(content)
    before = contents(left[1])
    with pytest.raises(AdoptionError, match=r"^.*/x/kwire-import.unfinished is damaged: .*$"):
        run(*left)
    assert contents(left[1]) == before


def test_a_mark_that_is_half_written_stands_in_nobodys_way(tmp_path: Path) -> None:
    dirs, x = make(tmp_path), tmp_path / "x"
    x.mkdir()
    (x / f"{layout.UNFINISHED_IMPORT}.tmp").write_bytes(json.dumps({"mode": "copy"}).encode()[:5])
    run(dirs, x)
    assert trio.run(served, x) == VALUES
