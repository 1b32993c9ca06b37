"""What was flushed is there after a power cut, however the file system orders what it was told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import pytest

from kwire.ports.simulated_disk import Order, SimulatedDisk
from kwire.storage import checkpoints, layout

from .crash.batches import read_committed
from .crash.broker import Broker
from .house import House
from .support import ROOT, T0, TOPIC_ID, Place, append, config, end_transaction, idempotent, read_all, run

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


def test_a_truncation_that_leaves_nothing_lasts_from_the_next_flush_on(order):
    for place in places(order):
        log = place.open()
        run(log.flush)
        run(append, log, "a")
        log.truncate_to(0)
        run(log.flush)
        place.files.cut_power()
        assert read_all(place.open(clean=False)) == []


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


def test_leader_epochs_of_segments_whose_deletion_was_undone_are_read_from_the_batches(order):
    for place in itertools.islice(places(order), 3):
        log = place.open()
        for epoch, value in ((1, "a"), (2, "b"), (4, "c")):
            run(append, log, value * 300, epoch=epoch)
        run(log.flush)
        place.files.write(f"{FOLDER}/{layout.LEADER_EPOCHS}", checkpoints.encode_epochs([(4, 2)]))
        again = place.open(clean=False, recovery_point=log.recovery_point)
        assert again.epochs.entries() == [(1, 0), (2, 1), (4, 2)]


def test_what_was_cut_off_a_segment_before_a_roll_does_not_come_back_in_it(order):
    for place in places(order):
        log = place.open()
        run(append, log, "a")
        run(log.flush)
        run(append, log, "b" * 100)
        log.truncate_to(1)
        log.roll()
        place.files.cut_power()
        assert read_all(place.open(clean=False, recovery_point=1)) in ([(0, "a")], [(0, "a"), (1, "b" * 100)])


def test_a_truncation_over_several_segments_leaves_no_gap(order):
    for place in places(order):
        log = place.open()
        for value in "abcdefghi":
            run(append, log, value * 100)
        run(log.flush)
        flushed = log.recovery_point
        log.truncate_to(1)
        place.files.cut_power()
        left = read_all(place.open(clean=False, recovery_point=flushed))
        assert [offset for offset, _ in left] == list(range(len(left)))


def test_aborted_transactions_that_a_recovery_wrote_anew_stay_hidden(order):
    for place in places(order):
        log = place.open()
        run(log.append_as_leader, idempotent(["gone"], 0, transactional=True), 0)
        run(end_transaction, log, commit=False)
        run(append, log, "a" * 20)
        run(log.flush)
        run(log.close)
        files = place.files
        recovered = place.open(clean=False, recovery_point=log.recovery_point)
        run(append, recovered, "b" * 200)  # in a segment of its own
        assert len(recovered.segments) == 2
        files.cut_power()
        again = place.open(clean=False, recovery_point=log.recovery_point)
        assert [(txn.first_offset, txn.last_offset) for txn in again.segments.first.transactions()] == [(0, 1)]


@pytest.mark.parametrize("rolled", [False, True])
def test_retention_that_leaves_no_record_leaves_the_offset_that_comes_next(order, rolled):
    for place in places(order, retention_ms=1):
        log = place.open()
        run(append, log, "a")
        run(append, log, "b")
        run(log.flush)
        if rolled:
            log.roll()
        log.set_high_watermark(log.log_end_offset)
        assert run(log.delete_old_segments, T0 + 10_000) == 1
        place.files.cut_power()
        assert place.open(clean=False, recovery_point=2).log_end_offset == 2


@pytest.mark.parametrize("kill", range(12))
def test_retention_of_several_segments_leaves_no_gap_before_those_that_stay(order, kill):
    for seed in SEEDS[:12]:
        broker = Broker(order, seed, {"t": config(segment_bytes=400, flush_messages=1, retention_ms=10_000)})
        broker.start()
        assert broker.do(partial(_expire, broker))
        broker.do(broker.upkeep.delete_old_segments, kill=kill)
        broker.start(power_cut=True)
        assert [value[:2] for _, value in read_all(broker.log("t"))][-2:] == ["y0", "y1"]
        assert broker.log("t").log_end_offset == 6


async def _expire(broker):
    """Four segments with records that are too old, and one that stays."""
    log = await broker.manager.get_or_create("t", 0, TOPIC_ID, broker.topics["t"])
    for number in range(4):
        await append(log, f"x{number}" + "." * 300, timestamp=broker.clock.wall_ms())
    broker.clock.advance(20_000)
    for number in range(2):
        await append(log, f"y{number}", timestamp=broker.clock.wall_ms())
    log.set_high_watermark(log.log_end_offset)


def test_the_cut_of_a_recovery_lasts(order):
    for place in places(order):
        log = place.open()
        run(append, log, "a")
        run(log.flush)
        path = log.segments.active.path(layout.LOG)
        size = place.files.file_size(path)
        torn = place.files.open(path)
        torn.pwrite([bytes(100)], size)
        torn.sync()
        place.open(clean=False, recovery_point=1)
        place.files.cut_power()
        assert place.files.file_size(path) == size


@pytest.mark.parametrize("kill", range(30))
def test_a_cleaning_that_ends_at_any_call_loses_no_key(order, kill):
    for seed in range(8):
        keyed = config(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, file_delete_delay_ms=0)
        broker = Broker(order, seed, {"t": keyed})
        broker.start()
        broker.do(partial(_fill, broker, keyed))
        broker.do(partial(_clean, broker), kill=kill)
        broker.start(power_cut=True)
        log = broker.log("t")
        log.set_high_watermark(log.log_end_offset)
        seen = read_committed(log)
        assert seen[-2:] == [(4, "k", "c"), (5, "k", "d")]
        assert "gone" not in [value for _, _, value in seen]


async def _fill(broker, keyed):
    log = await broker.manager.get_or_create("t", 0, TOPIC_ID, keyed)
    await log.append_as_leader(idempotent(["gone"], 0, transactional=True), 0)
    for value in "ab":
        await append(log, value)
    await end_transaction(log, commit=False)
    await append(log, "c")
    log.roll()
    await append(log, "d")
    await log.flush()
    log.set_high_watermark(log.log_end_offset)


async def _clean(broker):
    await broker.cleaner.clean(await broker.cleaner.dirtiest())


def test_what_is_appended_after_a_truncation_does_not_pass_for_flushed(order):
    topic = config(segment_bytes=400)
    for seed in SEEDS:
        broker = Broker(order, seed, {"t": topic})
        broker.start()
        broker.do(partial(_truncate_and_go_on, broker, topic))
        broker.start(power_cut=True)
        log = broker.log("t")
        left = read_all(log)
        assert [offset for offset, _ in left] == list(range(log.log_end_offset))
        if (1, "B") in left:
            assert 7 in log.producer_state.entries


async def _truncate_and_go_on(broker, topic):
    log = await broker.manager.get_or_create("t", 0, TOPIC_ID, topic)
    for value in "abc":
        await append(log, value)
    log.roll()
    await append(log, "d")
    await append(log, "e")
    await log.flush()
    await broker.upkeep.write_recovery_points()
    log.truncate_to(1)
    await log.append_as_leader(idempotent(["B"], 0), 0)
    await append(log, "C")
    log.roll()
    for value in "DEF":
        await append(log, value)


def test_a_cleaning_forgets_nothing_for_the_sake_of_what_a_power_cut_takes(order):
    """Of a producer the last batch stays: that may be in the active segment."""
    keyed = config(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, file_delete_delay_ms=0)
    for seed in SEEDS:
        broker = Broker(order, seed, {"t": keyed})
        broker.start()
        broker.do(partial(_write_twice, broker, keyed))
        broker.do(partial(_clean, broker))
        broker.start(power_cut=True)
        assert 7 in broker.log("t").producer_state.entries


async def _write_twice(broker, keyed):
    log = await broker.manager.get_or_create("t", 0, TOPIC_ID, keyed)
    await log.append_as_leader(idempotent(["a"], 0), 0)
    await append(log, "b")
    log.roll()
    await log.flush()
    await log.append_as_leader(idempotent(["c"], 1), 0)
    log.set_high_watermark(log.log_end_offset)
