"""Carrying an import out: the files that are there in the end, and what an interruption leaves, at whatever step."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.carrying import carry_out
from kwire.cluster.adoption.marks import Mode
from kwire.cluster.adoption.taking import plan_import
from kwire.cluster.stores.journal import replay
from kwire.config.topic import LogConfig
from kwire.ports.randomness import SeededRandomness
from kwire.ports.real_files import PosixFileSystem
from kwire.storage import checkpoints, layout
from kwire.storage.log_dir import LogDirError
from tests.cluster.adoption.apache import CLUSTER, FILES, NODE, ApacheDirs, topic
from tests.storage.support import ManualClock, batch, manager, read_all

VALUES = {("orders", 0): ["a", "b"], ("orders", 1): ["c"], ("prices", 0): ["d", "e", "f"]}


@pytest.fixture
def dirs(tmp_path: Path) -> ApacheDirs:
    return make(tmp_path)


def make(folder: Path, *, clean: bool = True) -> ApacheDirs:
    dirs = ApacheDirs(folder, 2, clean=clean)
    dirs.log(*topic("orders", 1, 2), *topic("prices", 2))
    for (name, index), values in VALUES.items():
        dirs.partition(name, 1 if name == "orders" else 2, index, in_dir=index, values=values)
    ends = checkpoints.encode_offsets({("orders", 0): 2, ("prices", 0): 3, ("other", 0): 9})
    (dirs.paths[0] / layout.RECOVERY_POINTS).write_bytes(ends)
    (dirs.paths[1] / layout.HIGH_WATERMARKS).write_bytes(checkpoints.encode_offsets({("orders", 1): 1}))
    return dirs


def run(dirs: ApacheDirs, *targets: Path, mode: Mode = Mode.COPY, files: PosixFileSystem = FILES) -> None:
    plan = plan_import(files, dirs.names, [str(target) for target in targets], mode, skip_incomplete=False)
    done: list[int] = []
    carry_out(files, plan, SeededRandomness(1).uuid, done.append)
    if not plan.before.moved:
        assert sum(done) == plan.bytes


async def served(*targets: Path) -> dict[tuple[str, int], list[str]]:
    """The values of each partition, as a broker's log manager finds them. Raises LogDirError."""
    managed = manager(DyingFiles(), ManualClock(), [str(target) for target in targets])
    try:
        assert await managed.lock() == CLUSTER
        await managed.load(CLUSTER, NODE, lambda topic: LogConfig())
        return {key: [value for _, value in read_all(log)] for key, log in managed.logs.items()}
    finally:
        managed.unlock()


def test_a_copy(dirs: ApacheDirs, tmp_path: Path) -> None:
    target = tmp_path / "kwire"
    run(dirs, target)
    assert trio.run(served, target) == VALUES
    assert replay("", (target / "kwire-metadata.journal").read_bytes(), closed_in_order=True).image.version == 1
    assert sorted(path.name for path in target.iterdir() if path.is_file()) == [
        ".lock",
        "cleaner-offset-checkpoint",
        "kwire-last-cleanshutdown",
        "kwire-metadata.clean",
        "kwire-metadata.journal",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    points = checkpoints.decode_offsets((target / layout.RECOVERY_POINTS).read_bytes())
    assert points == {("orders", 0): 2, ("prices", 0): 3}
    assert checkpoints.decode_offsets((target / layout.HIGH_WATERMARKS).read_bytes()) == {("orders", 1): 1}


def test_times_of_modification_stay(dirs: ApacheDirs, tmp_path: Path) -> None:
    """Retention goes by them where records have no times."""
    name = f"orders-0/{layout.segment_name(0, layout.LOG)}"
    FILES.set_modified_ms(f"{dirs.paths[0]}/{name}", 1_600_000_000_000)
    run(dirs, tmp_path / "kwire")
    assert FILES.modified_ms(f"{tmp_path}/kwire/{name}") == 1_600_000_000_000


def test_sealed_segments_may_be_shared(dirs: ApacheDirs, tmp_path: Path) -> None:
    folder = dirs.paths[0] / "orders-0"
    (folder / layout.segment_name(2, layout.LOG)).write_bytes((2).to_bytes(8, "big") + batch(["x"])[8:])
    for name in (layout.OFFSET_INDEX, layout.TIME_INDEX):
        (folder / layout.segment_name(2, name)).touch()
    run(dirs, tmp_path / "kwire", mode=Mode.LINK)
    links = {path.name: path.stat().st_nlink for path in (tmp_path / "kwire" / "orders-0").iterdir()}
    assert {name for name, count in links.items() if count == 2} == {layout.segment_name(0, layout.LOG)}


def test_a_target_that_is_filled_after_the_plan_was_made(dirs: ApacheDirs, tmp_path: Path) -> None:
    target = tmp_path / "kwire"
    plan = plan_import(FILES, dirs.names, [str(target)], Mode.COPY, skip_incomplete=False)
    target.mkdir()
    (target / "letters").write_text("to keep")
    with pytest.raises(AdoptionError, match="kwire is not empty"):
        carry_out(FILES, plan, SeededRandomness(1).uuid, lambda count: None)
    assert {path.name for path in target.iterdir()} == {".lock", "letters"}


def test_after_a_crash_what_recovery_makes_anew_stays_behind(tmp_path: Path) -> None:
    dirs = make(tmp_path, clean=False)
    folder = dirs.paths[0] / "prices-0"
    (folder / layout.segment_name(0, layout.OFFSET_INDEX)).write_bytes(bytes(1 << 20))
    (folder / layout.segment_name(0, layout.LOG + layout.DELETED)).touch()
    run(dirs, tmp_path / "kwire")
    assert not (tmp_path / "kwire" / layout.CLEAN_SHUTDOWN).exists()
    assert sorted(path.name for path in (tmp_path / "kwire" / "prices-0").iterdir()) == [
        layout.segment_name(0, layout.LOG),
        layout.LEADER_EPOCHS,
        layout.PARTITION_METADATA,
    ]
    assert trio.run(served, tmp_path / "kwire") == VALUES


def test_a_move(dirs: ApacheDirs, tmp_path: Path) -> None:
    run(dirs, tmp_path / "x", tmp_path / "y", mode=Mode.MOVE)
    assert [path.name for path in dirs.paths[0].iterdir() if path.is_dir()] == [layout.CLUSTER_METADATA_DIR]
    assert trio.run(served, tmp_path / "x", tmp_path / "y") == VALUES


class Killed(BaseException):
    """The end of the process."""


class DyingFiles(PosixFileSystem):
    """Files of a process that is killed at its n-th change. Nothing waits for the disk, which lives on."""

    def __init__(self, changes: int = 1 << 30) -> None:
        self.left = changes

    def _change(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def make_dirs(self, path: str) -> None:
        self._change()
        super().make_dirs(path)

    def rename(self, old: str, new: str) -> None:
        self._change()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._change()
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self._change()
        super().remove_tree(path)

    def sync_volume(self, path: str) -> None:
        self._change()

    def sync_dir(self, path: str) -> None:
        pass

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self._change()
        super().write_atomically(path, data, sync=False)


@contextmanager
def killable() -> Iterator[list[bool]]:
    """The list gets an element where the process was killed."""
    killed: list[bool] = []
    try:
        yield killed
    except Killed:
        killed.append(True)


@pytest.mark.parametrize("mode", [Mode.COPY, Mode.MOVE])
def test_killed_at_any_step_it_serves_nothing_and_can_be_run_again(tmp_path: Path, mode: Mode) -> None:
    for changes in range(60):
        folder = tmp_path / str(changes)
        dirs = make(folder)
        targets = [folder / "x", folder / "y"]
        with killable() as killed:
            run(dirs, *targets, mode=mode, files=DyingFiles(changes))
        if not killed:
            break
        if (targets[0] / layout.UNFINISHED_IMPORT).exists():
            with pytest.raises(LogDirError, match="holds a part of an import that was interrupted"):
                trio.run(served, *targets)
        with killable():  # once more, a little further
            run(dirs, *targets, mode=mode, files=DyingFiles(changes + 2))
        run_again_unless_done(dirs, targets, mode)
        assert trio.run(served, *targets) == VALUES
        shutil.rmtree(folder)
    assert not killed
    assert changes > 15


def run_again_unless_done(dirs: ApacheDirs, targets: list[Path], mode: Mode) -> None:
    if (targets[0] / layout.UNFINISHED_IMPORT).exists() or not (targets[0] / "kwire-metadata.journal").exists():
        run(dirs, *targets, mode=mode, files=DyingFiles())


def test_a_copy_that_was_interrupted_begins_anew(dirs: ApacheDirs, tmp_path: Path) -> None:
    """The source may have served again in between."""
    with killable() as killed:
        run(dirs, tmp_path / "kwire", files=DyingFiles(4))
    assert killed
    first = dirs.paths[0] / "orders-0" / layout.segment_name(0, layout.LOG)
    first.write_bytes(batch(["other"]))
    run(dirs, tmp_path / "kwire")
    assert trio.run(served, tmp_path / "kwire")["orders", 0] == ["other"]


def test_a_copy_that_was_interrupted_may_become_a_move(dirs: ApacheDirs, tmp_path: Path) -> None:
    with killable() as killed:
        run(dirs, tmp_path / "kwire", files=DyingFiles(4))
    assert killed
    run(dirs, tmp_path / "kwire", mode=Mode.MOVE)
    assert trio.run(served, tmp_path / "kwire") == VALUES


def interrupted_move(dirs: ApacheDirs, target: Path) -> None:
    with killable() as killed:
        run(dirs, target, mode=Mode.MOVE, files=DyingFiles(6))
    assert killed
    assert not (dirs.paths[0] / "orders-0").exists()


def test_a_move_that_was_interrupted_is_not_taken_for_anything_else(dirs: ApacheDirs, tmp_path: Path) -> None:
    interrupted_move(dirs, tmp_path / "kwire")
    with pytest.raises(AdoptionError, match="was moved there: run that again"):
        run(dirs, tmp_path / "kwire", mode=Mode.COPY)


def test_what_a_move_took_away_goes_nowhere_else(tmp_path: Path) -> None:
    """Wherever it was killed: what is gone is not taken for partitions that were never written to."""
    refused = 0
    for changes in range(60):
        folder = tmp_path / str(changes)
        dirs, x, z = make(folder), folder / "x", folder / "z"
        with killable() as killed:
            run(dirs, x, mode=Mode.MOVE, files=DyingFiles(changes))
        if not any(x.glob("*-*/")):
            continue
        for mode, targets in ((Mode.MOVE, [z]), (Mode.COPY, [z]), (Mode.COPY, [z, folder / "y"])):
            said = rf"^an import has moved orders-0 to .*/x, as .*-0/{layout.MOVED_BY_IMPORT} says: if it was [^\n]*$"
            with pytest.raises(AdoptionError, match=said):
                run(dirs, *targets, mode=mode)
            assert not z.exists()
        refused += 1
        run_again_unless_done(dirs, [x], Mode.MOVE)
        assert trio.run(served, x) == VALUES
        if not killed:
            break
    assert not killed
    assert refused > 5


def test_the_only_target_is_not_mounted_any_more_amid_a_move(dirs: ApacheDirs, tmp_path: Path) -> None:
    interrupted_move(dirs, tmp_path / "kwire")
    (tmp_path / "kwire").rename(tmp_path / "elsewhere")
    with pytest.raises(AdoptionError, match=r"has moved orders-0 to .*/kwire, .*is the volume mounted\?"):
        run(dirs, tmp_path / "kwire", mode=Mode.MOVE)
    (tmp_path / "elsewhere").rename(tmp_path / "kwire")
    run(dirs, tmp_path / "kwire", mode=Mode.MOVE)
    assert trio.run(served, tmp_path / "kwire") == VALUES


def test_what_was_moved_away_and_is_back(dirs: ApacheDirs, tmp_path: Path) -> None:
    """The file that says where it went says nothing of what is there; and a second move keeps what the first said."""
    x, y = tmp_path / "x", tmp_path / "y"
    run(dirs, x, mode=Mode.MOVE)
    for name, number in (("orders-0", 0), ("orders-1", 1)):
        (x / name).rename(dirs.paths[number] / name)
    with pytest.raises(AdoptionError, match="has moved prices-0 to"):
        run(dirs, y)
    dirs.log(*topic("orders", 1, 2))
    run(dirs, y, mode=Mode.MOVE)
    assert trio.run(served, y) == {key: values for key, values in VALUES.items() if key[0] == "orders"}
    dirs.log(*topic("prices", 2))
    with pytest.raises(AdoptionError, match=r"has moved prices-0 to .*/x"):
        run(dirs, tmp_path / "z")


def test_a_damaged_note_of_a_move(dirs: ApacheDirs, tmp_path: Path) -> None:
    for content in (b"{", b"[]", b'{"orders-0": 1}', b"\xff"):
        (dirs.paths[1] / layout.MOVED_BY_IMPORT).write_bytes(content)
        with pytest.raises(AdoptionError, match=f"apache-1/{layout.MOVED_BY_IMPORT} is damaged"):
            run(dirs, tmp_path / "kwire")


def test_a_partition_that_came_back_amid_a_move(dirs: ApacheDirs, tmp_path: Path) -> None:
    interrupted_move(dirs, tmp_path / "kwire")
    dirs.partition("orders", 1, 0)
    with pytest.raises(AdoptionError, match=r"was moved there before, and .* is there again"):
        run(dirs, tmp_path / "kwire", mode=Mode.MOVE)


def test_a_source_in_use(dirs: ApacheDirs, tmp_path: Path) -> None:
    plan = plan_import(FILES, dirs.names, [f"{tmp_path}/kwire"], Mode.COPY, skip_incomplete=False)
    lock = FILES.lock(f"{dirs.paths[1]}/{layout.LOCK}")
    with pytest.raises(AdoptionError, match="apache-1 is in use by a broker: stop it first"):
        plan_import(FILES, dirs.names, [f"{tmp_path}/kwire"], Mode.COPY, skip_incomplete=False)
    with pytest.raises(AdoptionError, match="apache-1 is in use by a broker: stop it first"):
        carry_out(FILES, plan, SeededRandomness(1).uuid, lambda done: None)
    lock.release()


def test_two_imports_into_one_dir(dirs: ApacheDirs, tmp_path: Path) -> None:
    (tmp_path / "kwire").mkdir()
    lock = FILES.lock(f"{tmp_path}/kwire/{layout.LOCK}")
    with pytest.raises(AdoptionError, match="in use by a broker or by another import"):
        run(dirs, tmp_path / "kwire")
    lock.release()


def with_room_for(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PosixFileSystem, "space", lambda self, path: (1 << 40, count))


def test_no_room(dirs: ApacheDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_room_for(5, monkeypatch)
    with pytest.raises(AdoptionError, match="kwire has room for 5 bytes"):
        run(dirs, tmp_path / "kwire")
    assert not (tmp_path / "kwire").exists()


def test_two_dirs_share_the_room_of_their_volume(
    dirs: ApacheDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = tmp_path / "x", tmp_path / "y"
    size = plan_import(FILES, dirs.names, [str(x), str(y)], Mode.COPY, skip_incomplete=False).bytes
    with_room_for(size - 1, monkeypatch)
    with pytest.raises(AdoptionError, match=f"/x and /.*/y has room for {size - 1} bytes, and {size} are to be copied"):
        run(dirs, x, y)
    with_room_for(size, monkeypatch)
    run(dirs, x, y)


def test_what_an_interrupted_copy_left_counts_as_room(
    dirs: ApacheDirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = plan_import(FILES, dirs.names, [f"{tmp_path}/kwire"], Mode.COPY, skip_incomplete=False).bytes
    with killable() as killed:
        run(dirs, tmp_path / "kwire", files=DyingFiles(3))
    assert killed
    with_room_for(1, monkeypatch)
    left = sum(path.stat().st_size for path in (tmp_path / "kwire").glob("*-*/*"))
    assert 0 < left < size - 1
    with pytest.raises(AdoptionError, match=f"has room for {left + 1} bytes"):
        run(dirs, tmp_path / "kwire")
    with_room_for(size - left, monkeypatch)
    run(dirs, tmp_path / "kwire")
    assert trio.run(served, tmp_path / "kwire") == VALUES
