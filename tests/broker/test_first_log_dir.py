"""The first log dir has the metadata: what a start makes of log dirs where they are not there, or elsewhere too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kwire.cluster.stores.journal import JOURNAL
from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage import layout
from tests.broker.scene import running
from tests.storage.support import read_all

ONE_TWO = {"log.dirs": "/one,/two"}
TWO_ONE = {"log.dirs": "/two,/one"}
ONE = {"log.dirs": "/one"}
TWO = {"log.dirs": "/two"}


def contents(files: MemoryFileSystem) -> dict[str, bytes]:
    """Of all files but the locks."""
    return {path: data for path, data in _files(files, "/") if not path.endswith(layout.LOCK)}


def _files(files: MemoryFileSystem, folder: str) -> list[tuple[str, bytes]]:
    found = []
    for name in files.list(folder):
        path = f"{folder.rstrip('/')}/{name}"
        try:
            found += _files(files, path)
        except NotADirectoryError:
            found.append((path, files.read(path)))
    return found


async def refusal(files: MemoryFileSystem, settings: Mapping[str, str]) -> str:
    """Why a start is refused, which changes nothing in the log dirs."""
    before = contents(files)
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running(settings, files=files):
            pass
    assert contents(files) == before
    said = str(refused.value.exceptions[0])
    assert "\n" not in said
    return said


async def all_in_the_first() -> MemoryFileSystem:
    """A broker of two log dirs, of which the second one holds nothing."""
    async with running(ONE_TWO) as scene:
        await scene.create("topic")
        await scene.produce("topic", b"before")
        assert scene.log("topic").log_dir.path == "/one"
        return scene.files


async def two_that_began(files: MemoryFileSystem) -> None:
    """Gives the second dir metadata of its own, as a broker does that is started with it alone and begins anew."""
    files.rename("/two", "/aside")
    async with running(TWO, files=files, seed=8) as scene:
        await scene.create("other")
        await scene.create("another")
    files.write("/aside/" + JOURNAL, files.read("/two/" + JOURNAL))
    files.remove_tree("/two")
    files.rename("/aside", "/two")


async def test_a_dir_of_a_cluster_whose_metadata_is_elsewhere_is_no_place_to_begin(autojump_clock) -> None:
    files = await all_in_the_first()
    said = await refusal(files, TWO)
    assert "there is no metadata in /two, which comes first in log.dirs, though that belongs to a cluster" in said
    assert await refusal(files, TWO_ONE) == "the metadata is in /one: it must come first in log.dirs, where /two is"
    async with running(ONE_TWO, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]


async def test_metadata_in_two_dirs(autojump_clock) -> None:
    files = await all_in_the_first()
    await two_that_began(files)
    for settings in (ONE_TWO, TWO_ONE):
        said = await refusal(files, settings)
        assert "/one (version 2, 1 topics)" in said
        assert "/two (version 3, 2 topics)" in said
        assert f"by moving {JOURNAL} of the other out of the log dirs" in said
    files.write("/two/" + JOURNAL, b"rubbish\n")
    assert "/two (damaged)" in await refusal(files, ONE_TWO)
    files.remove("/two/" + JOURNAL)
    async with running(ONE_TWO, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]


async def test_metadata_that_an_operator_moved(autojump_clock) -> None:
    files = await all_in_the_first()
    files.rename("/one/" + JOURNAL, "/two/" + JOURNAL)
    assert "the metadata is in /two: it must come first" in await refusal(files, ONE_TWO)
    async with running(TWO_ONE, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]


async def test_a_journal_to_which_nothing_was_committed_counts_for_none(autojump_clock) -> None:
    """A first start left it that was killed, or an older version that refused to begin there."""
    new = MemoryFileSystem()
    async with running(ONE, files=new):
        pass
    begins = new.read("/one/" + JOURNAL).splitlines(keepends=True)[0]
    files = await all_in_the_first()
    files.write("/two/" + JOURNAL, begins + b"12345678 {")
    assert "the metadata is in /one" in await refusal(files, TWO_ONE)
    async with running(ONE_TWO, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]
    killed = MemoryFileSystem()
    killed.make_dirs("/one")
    killed.write("/one/" + JOURNAL, begins)
    async with running(ONE, files=killed) as scene:
        await scene.create("topic")


async def test_the_identity_of_the_first_dir_is_lost(autojump_clock) -> None:
    files = await all_in_the_first()
    cluster_id = files.read("/one/" + layout.META_PROPERTIES).decode().partition("cluster.id=")[2].split()[0]
    lines = f"version=1, cluster.id={cluster_id} and node.id=1"
    files.remove("/one/" + layout.META_PROPERTIES)
    for settings in (ONE_TWO, ONE):
        assert await refusal(files, settings) == (
            f"/one/{layout.META_PROPERTIES} is missing, though {JOURNAL} is there: put it back, from a backup or with "
            f"the three lines {lines}"
        )
    files.write("/one/" + layout.META_PROPERTIES, f"version=1\ncluster.id={cluster_id}\nnode.id=1\n".encode())
    async with running(ONE_TWO, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]


@pytest.mark.parametrize("lost", [[JOURNAL], [JOURNAL, layout.META_PROPERTIES]])
async def test_logs_without_metadata_are_left_as_they_are(lost: list[str], autojump_clock) -> None:
    files = await all_in_the_first()
    files.remove_tree("/two")
    kept = {name: files.read(f"/one/{name}") for name in lost}
    for name in lost:
        files.remove(f"/one/{name}")
    said = await refusal(files, ONE)
    assert "there is no metadata in /one, which comes first in log.dirs" in said
    assert len(lost) == 1 or "there are logs of 1 partitions in /one" in said
    for name, data in kept.items():
        files.write(f"/one/{name}", data)
    async with running(ONE, files=files) as scene:
        assert read_all(scene.log("topic")) == [(0, "before")]
