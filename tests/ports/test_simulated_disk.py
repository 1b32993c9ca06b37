"""What a kill, a power cut and a failing device may leave of files, and what they may not."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from kwire.ports.simulated_disk import Effect, Killed, Order, SimulatedDisk, chance, kill_at, once

MANY = 200
"""Seeds enough to meet every outcome of a few coins."""


def outcomes(order: Order, use: Callable[[SimulatedDisk], None]) -> set[tuple[tuple[str, bytes], ...]]:
    """What power cuts may leave of /d and the files in it, after `use`."""
    found = set()
    for seed in range(MANY):
        disk = SimulatedDisk(order=order, seed=seed)
        disk.make_dirs("/d")
        disk.sync_dir("/")
        use(disk)
        disk.cut_power()
        found.add(tuple((name, disk.read(f"/d/{name}")) for name in disk.list("/d")))
    return found


both = pytest.mark.parametrize("order", Order)


@both
def test_what_was_synced_stays(order):
    def use(disk):
        file = disk.open("/d/a", create=True)
        file.pwrite([b"sync", b"ed"], 0)
        file.sync()
        disk.sync_dir("/d")

    assert outcomes(order, use) == {(("a", b"synced"),)}


@both
def test_what_was_not_synced_is_there_or_not_or_torn(order):
    def use(disk):
        file = disk.open("/d/a", create=True)
        file.pwrite([b"old."], 0)
        file.sync()
        disk.sync_dir("/d")
        file.pwrite([b"new"], 4)

    left = {dict(names)["a"] for names in outcomes(order, use)}
    torn = {b"old.n", b"old.ne"} if order is Order.JOURNAL else {b"old.\0\0\0"}
    assert left == {b"old.", b"old.new"} | torn


def test_sectors_come_and_go_alone_where_nothing_is_in_order():
    def use(disk):
        file = disk.open("/d/a", create=True)
        disk.sync_dir("/d")
        file.pwrite([b"x" * 1536], 0)

    sectors = {tuple(dict(names)["a"][at : at + 1] for at in (0, 512, 1024)) for names in outcomes(Order.NONE, use)}
    assert (b"\0", b"x", b"x") in sectors
    assert (b"x", b"\0", b"x") in sectors


def test_a_synced_file_has_its_name_by_the_journal_alone():
    def use(disk):
        file = disk.open("/d/a", create=True)
        file.sync()

    assert outcomes(Order.JOURNAL, use) == {(("a", b""),)}
    assert outcomes(Order.NONE, use) == {(("a", b""),), ()}


def test_names_go_to_the_disk_in_order_by_the_journal_alone():
    def use(disk):
        for name in "abc":
            disk.open(f"/d/{name}", create=True)

    in_order = {(), ("a",), ("a", "b"), ("a", "b", "c")}
    assert {tuple(dict(names)) for names in outcomes(Order.JOURNAL, use)} == in_order
    assert {tuple(dict(names)) for names in outcomes(Order.NONE, use)} > in_order


@both
def test_a_rename_is_there_or_not(order):
    def use(disk):
        disk.write_atomically("/d/a", b"old")
        disk.write("/d/a.tmp", b"new")
        disk.open("/d/a.tmp").sync()
        disk.rename("/d/a.tmp", "/d/a")

    renamed = {(("a", b"new"),), (("a", b"old"), ("a.tmp", b"new"))}
    assert outcomes(order, use) == (renamed if order is Order.JOURNAL else {*renamed, (("a", b"old"),)})


@both
def test_an_atomic_write_leaves_the_old_or_the_new_wherever_it_ends(order):
    seen = set()
    for seed in range(MANY):
        disk = SimulatedDisk(order=order, seed=seed)
        disk.make_dirs("/d")
        disk.sync_dir("/")
        disk.write_atomically("/d/a", b"old")
        disk.restart()
        disk.fault = kill_at(seed % 7, share=0.5)
        try:
            disk.write_atomically("/d/a", b"new")
        except Killed:
            disk.cut_power()
        seen.add(disk.read("/d/a"))
    assert seen == {b"old", b"new"}


def test_a_folder_that_is_lost_takes_its_files_along():
    lost = 0
    for seed in range(MANY):
        disk = SimulatedDisk(order=Order.NONE, seed=seed)
        disk.make_dirs("/d/e")
        disk.open("/d/e/a", create=True).sync()
        disk.sync_dir("/d/e")
        disk.cut_power()
        lost += not disk.exists("/d/e/a")
        assert disk.exists("/d/e") or not disk.exists("/d/e/a")
    assert 0 < lost < MANY


def test_a_killed_process_does_nothing_more_and_its_files_stay():
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    disk.lock("/d/.lock")
    disk.restart()
    disk.fault = kill_at(1, share=0.5)
    file = disk.open("/d/a", create=True)
    with pytest.raises(Killed):
        file.pwrite([b"12345678"], 0)
    for again in (lambda: file.pread(1, 0), lambda: disk.remove("/d/a"), lambda: disk.write("/d/b", b"")):
        with pytest.raises(Killed):
            again()
    disk.restart()
    assert disk.read("/d/a") == b"1234"
    disk.lock("/d/.lock")


@both
def test_a_failed_sync_is_not_made_good_by_the_next(order):
    def use(disk):
        file = disk.open("/d/a", create=True)
        disk.sync_dir("/d")
        file.pwrite([b"1234"], 0)
        disk.fault = once("sync", Effect(errno.EIO))
        with pytest.raises(OSError, match="Input/output"):
            file.sync()
        file.sync()
        assert disk.read("/d/a") == b"1234"

    assert (("a", b""),) in outcomes(order, use)


def test_a_sync_that_is_lost():
    disk = SimulatedDisk(order=Order.NONE)
    disk.make_dirs("/d")
    disk.sync_volume("/d")
    disk.fault = once("sync_volume", Effect())
    disk.open("/d/a", create=True)
    disk.sync_volume("/d")
    left = set()
    for _ in range(20):
        disk.cut_power()
        left.add(disk.exists("/d/a"))
    assert False in left


def test_errors_by_chance_are_the_same_for_a_seed():
    def play(seed):
        disk = SimulatedDisk()
        disk.make_dirs("/d")
        disk.fault = chance(seed, 0.3)
        failures = []
        for number in range(50):
            try:
                disk.write(f"/d/{number}", b"content")
            except OSError as error:
                failures.append((number, error.errno, disk.file_size(f"/d/{number}")))
        return failures

    assert play(1) == play(1) != play(2)
    assert {number for _, number, _ in play(1)} == {errno.EIO, errno.ENOSPC}
    assert {size for _, _, size in play(1)} & set(range(1, 7))
