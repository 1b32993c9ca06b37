"""What was flushed is there after a power cut, however the file system orders what it was told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.ports.simulated_disk import Order, SimulatedDisk
from kwire.storage import checkpoints, layout

from .house import House
from .support import ROOT, TOPIC_ID, Place, append, config, read_all, run

SEEDS = range(40)
FOLDER = f"{ROOT}/t-0"

pytestmark = pytest.mark.parametrize("order", Order)


def places(order: Order, **values: object) -> Iterator[Place]:
    """The same place on disks that leave different things."""
    for seed in SEEDS:
        disk = SimulatedDisk(order=order, seed=seed)
        disk.make_dirs(ROOT)
        disk.sync_dir("/")
        yield Place(disk, **{"segment_bytes": 400, **values})


def test_the_folder_of_a_new_partition_stays_with_its_first_flush(order):
    for place in places(order, flush_messages=1):
        log = place.open()
        run(append, log, "a")
        place.files.cut_power()
        assert read_all(place.open(clean=False)) == [(0, "a")]


def test_a_new_log_dir_stays_too(order):
    root = "/var/lib/kwire"
    for seed in SEEDS:
        house = House((root,))
        house.files = SimulatedDisk(house.clock, order=order, seed=seed)
        managed = run(house.start)
        log = run(managed.get_or_create, "t", 0, TOPIC_ID, config(flush_messages=1))
        run(append, log, "a")
        house.files.cut_power()
        managed = run(house.start)
        assert read_all(managed.logs["t", 0]) == [(0, "a")]


def test_leader_epochs_of_what_was_flushed_stay_whatever_became_of_those_written_since(order):
    for place in places(order):
        log = place.open()
        run(append, log, "a", "b", epoch=1)
        run(append, log, "c" * 300, epoch=4)  # in a segment of its own
        run(log.flush)
        run(append, log, "d" * 300, epoch=6)
        run(place.services.chores.finish_due)
        place.files.cut_power()
        again = place.open(clean=False, recovery_point=log.recovery_point)
        assert again.epochs.entries()[:2] == [(1, 0), (4, 2)]


def test_segments_that_a_truncation_removed_do_not_come_back_after_a_flush(order):
    for place in places(order):
        log = place.open()
        for value in "abcdef":
            run(append, log, value * 100)
        run(log.flush)
        log.truncate_to(1)
        run(append, log, "B")
        run(log.flush)
        known = read_all(log)
        place.files.cut_power()
        assert read_all(place.open(clean=False, recovery_point=log.recovery_point)) == known


@pytest.mark.parametrize("left", [b"", b"0\n1\n", b"0\n2\n1 0\n4 ", b"0\n2\n1 0\n4 2", bytes(12)])
@pytest.mark.parametrize("clean", [True, False])
def test_leader_epochs_that_are_torn_are_read_from_the_batches(order, left, clean):
    place = next(places(order))
    log = place.open()
    run(append, log, "a", "b", epoch=1)
    run(append, log, "c" * 300, epoch=4)
    run(append, log, "d" * 300, epoch=4)
    run(log.close)
    assert checkpoints.decode_epochs(place.files.read(f"{FOLDER}/{layout.LEADER_EPOCHS}")) == [(1, 0), (4, 2)]
    place.files.write(f"{FOLDER}/{layout.LEADER_EPOCHS}", left)
    again = place.open(clean=clean, recovery_point=log.recovery_point)
    assert again.epochs.entries() == [(1, 0), (4, 2)]
