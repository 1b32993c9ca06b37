"""A cleaning that is given up when its segment was ready already."""

from __future__ import annotations

from contextlib import suppress

import pytest

from kwire.ports.simulated_disk import Killed, SimulatedDisk, kill_at
from kwire.storage import layout
from kwire.storage.cleaning.cleaned import discard, make_ready
from kwire.storage.swaps import finish_swaps

FOLDER = "/data/t-0"


@pytest.mark.parametrize("call", range(12))
@pytest.mark.parametrize("restart", range(8))
def test_a_crash_amid_that_leaves_one_of_the_two_segments_whole(call: int, restart: int) -> None:
    """And one amid the start after it."""
    disk = SimulatedDisk()
    disk.make_dirs(FOLDER)
    names = [layout.segment_name(0, suffix) for suffix in layout.SEGMENT_SUFFIXES]
    for name in names:
        disk.write(f"{FOLDER}/{name}", b"old")
        disk.write(f"{FOLDER}/{name}{layout.CLEANED}", b"new")
    make_ready(disk, FOLDER, 0)
    disk.fault = kill_at(disk.calls + call)
    with suppress(Killed):
        discard(disk, FOLDER, 0)
    disk.restart()
    disk.fault = kill_at(disk.calls + restart)
    with suppress(Killed):
        finish_swaps(disk, FOLDER, disk.list(FOLDER))
    disk.restart()
    left = finish_swaps(disk, FOLDER, disk.list(FOLDER))
    assert sorted(left) == sorted(names)
    assert len({disk.read(f"{FOLDER}/{name}") for name in names}) == 1
