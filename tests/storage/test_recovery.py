import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol import uuids
from kwire.storage import checkpoints, layout

from .support import T0, TOPIC_ID, Place, append, batch, end_transaction, idempotent, placed, read_all

DIR = "/data/t-0"


async def place_with_log(count=10, **values):
    place = Place(**{"segment_bytes": 300, **values})
    log = place.open()
    for i in range(count):
        await append(log, f"{i}a", f"{i}b", timestamp=T0 + 10 * i, epoch=i // 4)
    return place, log


def contents(place, *suffixes):
    return {name: place.memory.read(f"{DIR}/{name}") for name in place.names() if name.endswith(suffixes)}


def damage(place, name, change):
    path = f"{DIR}/{name}"
    data = change(place.memory.read(path))
    place.memory.remove(path)
    place.memory.open(path, create=True).pwrite([data], 0)


async def test_after_a_clean_stop_no_batch_is_looked_at_but_the_last():
    place, log = await place_with_log(50)
    await log.close()
    read = []
    place.memory.fault = lambda operation, path, size: (
        read.append((path, size)) if operation == "read" and path.endswith(".log") else None
    )
    again = place.open()
    place.memory.fault = None
    assert {path for path, _ in read} == {f"{DIR}/{layout.segment_name(again.segments.active.base_offset, '.log')}"}
    assert again.recovery_point == again.log_end_offset == 100
    assert read_all(again) == read_all(log)
    assert again.epochs.entries() == log.epochs.entries()


async def test_a_clean_stop_leaves_what_a_start_needs():
    place, log = await place_with_log()
    await log.append_as_leader(idempotent(["p"], 0), 3)
    await log.close()
    assert place.memory.read(f"{DIR}/{layout.LEADER_EPOCHS}") == b"0\n4\n0 0\n1 8\n2 16\n3 20\n"
    assert layout.segment_name(21, ".snapshot") in place.names()
    for segment in log.segments:
        for suffix in (".log", ".index", ".timeindex"):
            assert layout.segment_name(segment.base_offset, suffix) in place.names()
    again = place.open()
    assert again.producer_state.entries[7].last_sequence == 0
    assert (await again.append_as_leader(idempotent(["p"], 0), 3)).duplicate


async def test_after_a_kill_everything_is_built_anew():
    place, log = await place_with_log()
    await log.append_as_leader(idempotent(["a"], 0, transactional=True), 2)
    await end_transaction(log, commit=False, epoch=2)
    await log.append_as_leader(idempotent(["b"], 1), 2)
    log.segments.active.seal()
    expected = contents(place, ".index", ".timeindex", ".txnindex")
    for name in expected:
        place.memory.remove(f"{DIR}/{name}")
    again = place.open(clean=False)
    assert read_all(again) == read_all(log)
    assert contents(place, ".index", ".timeindex", ".txnindex") == expected
    assert again.epochs.entries() == log.epochs.entries()
    assert again.producer_state.entries[7].last_sequence == 1
    assert again.last_stable_offset == 0  # nothing is known to be replicated yet
    again.set_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset


tails = st.one_of(
    st.just(bytes(500)),
    st.binary(min_size=1, max_size=200),
    st.integers(1, 90).map(lambda cut: placed(20, ["torn", "torn"])[:-cut]),
)


@given(tails)
def test_a_torn_tail_is_cut_at_the_last_whole_batch(tail):
    place = Place()
    blob = b"".join(placed(2 * i, [f"{i}a", f"{i}b"]) for i in range(10))
    path = f"{DIR}/{layout.segment_name(0, '.log')}"
    place.memory.make_dirs(DIR)
    place.memory.open(path, create=True).pwrite([blob + tail], 0)
    log = place.open(clean=False)
    assert log.log_end_offset == 20
    assert [offset for offset, _ in read_all(log)] == list(range(20))
    assert place.memory.file_size(path) == len(blob)
    assert read_all(place.open()) == read_all(log)


async def test_what_lies_behind_a_corrupt_batch_is_removed():
    place, log = await place_with_log()
    second = log.segments[1]
    at = second.find(second.base_offset + 2)[0]
    damage(
        place, layout.segment_name(second.base_offset, ".log"), lambda data: data[: at + 70] + b"!" + data[at + 71 :]
    )
    again = place.open(clean=False)
    end = second.base_offset + 2
    assert again.log_end_offset == end
    assert [offset for offset, _ in read_all(again)] == list(range(end))
    assert again.epochs.entries()[-1][1] < end
    assert len(again.segments) == 2
    assert not [name for name in place.names() if int(name[:20] if name[0] == "0" else 0) > end]


async def test_recovery_begins_at_the_recovery_point():
    place, log = await place_with_log()
    third = log.segments[2].base_offset
    damage(place, layout.segment_name(0, ".log"), lambda data: data[:70] + b"!" + data[71:])
    again = place.open(clean=False, recovery_point=third)
    assert again.log_end_offset == 20
    assert again.recovery_point == third - 1  # the segment before it may be younger than the point: it was gone through
    assert place.open(clean=False, recovery_point=third - 1).log_end_offset == 20
    assert place.open(clean=False, recovery_point=0).log_end_offset == 0


async def test_segments_that_overlap_are_not_of_this_log():
    place, _ = await place_with_log(0, segment_bytes=1 << 20)
    log = place.open()
    await append(log, "a", "b", "c")
    stray = f"{DIR}/{layout.segment_name(1, '.log')}"
    place.memory.open(stray, create=True).pwrite([placed(1, ["x", "y", "z"])], 0)
    assert read_all(place.open(clean=False)) == [(0, "a"), (1, "b"), (2, "c")]
    assert not place.memory.exists(stray)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"x", b"\xff" * 24, bytes(24)])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_missing_and_wrong_indexes(clean, content, suffix):
    place, log = await place_with_log(40, index_interval_bytes=0)
    await log.close()
    known = read_all(log)
    for segment in log.segments:
        name = layout.segment_name(segment.base_offset, suffix)
        damage(place, name, lambda data: content or b"")
        if content is None:
            place.memory.remove(f"{DIR}/{name}")
    again = place.open(clean=clean)
    assert again.log_end_offset == 80
    assert read_all(again) == known
    assert await again.offset_for_timestamp(T0 + 100) == (T0 + 100, 20, 2) or content == b""
    await append(again, "more")
    await again.close()
    assert read_all(place.open()) == [*known, (80, "more")]


async def test_a_log_that_does_not_end_well_after_a_clean_stop_is_recovered():
    place, log = await place_with_log()
    await log.close()
    name = layout.segment_name(log.segments.active.base_offset, ".log")
    damage(place, name, lambda data: data[:-5])
    again = place.open()
    assert again.log_end_offset == 18
    assert [offset for offset, _ in read_all(again)] == list(range(18))


async def test_a_wrong_transaction_index_is_built_anew():
    place, _ = await place_with_log(0)
    log = place.open()
    await log.append_as_leader(idempotent(["a"], 0, transactional=True), 0)
    await end_transaction(log, commit=False)
    expected = log.aborted(0, log.read(0, 1000))
    await log.close()
    damage(place, layout.segment_name(0, ".txnindex"), lambda data: b"\x00\x09" + data[2:])
    again = place.open()
    assert again.aborted(0, again.read(0, 1000)) == expected


async def test_a_wrong_snapshot_is_replaced_by_a_replay():
    place, _ = await place_with_log(0)
    log = place.open()
    await log.append_as_leader(idempotent(["a"], 0), 0)
    log.roll()
    await log.append_as_leader(idempotent(["b"], 1), 0)
    await log.close()
    damage(place, layout.segment_name(2, ".snapshot"), lambda data: data[:-1])
    assert place.open().producer_state.entries[7].last_sequence == 1
    for offset in (1, 2):
        damage(place, layout.segment_name(offset, ".snapshot"), lambda data: data[:-1])
    assert place.open().producer_state.entries[7].last_sequence == 1


async def test_wrong_checkpoints_of_a_partition_cost_nothing_but_what_they_say():
    place, log = await place_with_log()
    await log.close()
    damage(place, layout.LEADER_EPOCHS, lambda data: b"?")
    place.memory.open(f"{DIR}/{layout.PARTITION_METADATA}", create=True).pwrite([b"?"], 0)
    again = place.open()
    assert again.log_end_offset == 20
    assert again.topic_id is None
    assert place.open(clean=False).epochs.entries() == log.epochs.entries()


async def test_the_topic_id_is_read():
    place, log = await place_with_log()
    await log.close()
    text = checkpoints.encode_partition_metadata(uuids.to_text(TOPIC_ID))
    place.memory.open(f"{DIR}/{layout.PARTITION_METADATA}", create=True).pwrite([text], 0)
    assert place.open().topic_id == TOPIC_ID


async def test_epochs_behind_the_end_are_forgotten():
    place, log = await place_with_log()
    log.epochs.assign(50, 20)
    await log.close()
    name = layout.segment_name(log.segments.active.base_offset, ".log")
    damage(place, name, lambda data: data[:-1])
    assert place.open(clean=False).epochs.entries() == [(0, 0), (1, 8), (2, 16)]


async def test_the_log_start_offset_of_the_checkpoint():
    place, log = await place_with_log()
    await log.close()
    again = place.open(log_start=5, high_watermark=3)
    assert (again.log_start_offset, again.high_watermark) == (5, 5)
    assert again.epochs.entries()[0] == (0, 5)
    assert place.open(log_start=5, high_watermark=30).high_watermark == 20


async def test_a_log_start_beyond_the_end_begins_anew():
    place, log = await place_with_log()
    await log.close()
    again = place.open(log_start=500)
    assert (again.log_start_offset, again.log_end_offset, len(again.segments)) == (500, 500, 1)
    assert await append(again, "x") == 500


async def test_indexes_without_a_segment_are_removed():
    place, log = await place_with_log()
    await log.close()
    place.memory.open(f"{DIR}/{layout.segment_name(999, '.index')}", create=True)
    place.open()
    assert layout.segment_name(999, ".index") not in place.names()


async def test_recovery_after_a_power_cut_keeps_what_was_flushed():
    place, log = await place_with_log()
    await log.flush()
    point = log.recovery_point
    for i in range(10):
        await append(log, f"late {i}")
    known = read_all(log)
    place.memory.lose_power(lambda synced, size: synced + (size - synced) // 2)
    again = place.open(clean=False, recovery_point=point)
    assert again.log_end_offset >= point
    assert read_all(again) == known[: again.log_end_offset]


async def test_a_hole_that_a_power_cut_left_ends_the_log_but_one_of_compaction_does_not():
    place, log = await place_with_log()
    gone = [segment.base_offset for segment in log.segments][1]
    for name in contents(place, ".log", ".index", ".timeindex"):
        if name.startswith(f"{gone:020d}"):
            place.memory.remove(f"{DIR}/{name}")
    beyond = log.segments[2].base_offset
    compacted = Place(segment_bytes=300, cleanup_policy=frozenset({"compact"})).config
    usual, place.config = place.config, compacted
    assert place.open(clean=False).log_end_offset == 20
    place.config = usual
    assert place.open(clean=False, recovery_point=beyond).log_end_offset == 20
    assert place.open(clean=False, recovery_point=gone).log_end_offset == gone


async def test_deleted_and_interrupted_files():
    place, log = await place_with_log()
    await log.close()
    known = read_all(log)
    for name in ("00000000000000000000.log.deleted", "00000000000000000004.log.cleaned"):
        place.memory.open(f"{DIR}/{name}", create=True).pwrite([b"rubbish"], 0)
    assert read_all(place.open()) == known
    assert not any(name.endswith((".deleted", ".cleaned")) for name in place.names())


async def test_a_swap_replaces_the_segments_it_covers():
    place, log = await place_with_log()
    await log.close()
    keep = log.segments[2].base_offset
    compacted = placed(0, ["kept"]) + placed(keep - 1, ["kept too"])
    place.memory.open(f"{DIR}/{layout.segment_name(0, '.log.swap')}", create=True).pwrite([compacted], 0)
    again = place.open()
    assert [segment.base_offset for segment in again.segments][:2] == [0, keep]
    assert read_all(again)[:3] == [(0, "kept"), (keep - 1, "kept too"), (keep, f"{keep // 2}a")]


async def test_a_swap_without_records_replaces_the_segment_whose_name_it_has():
    place, log = await place_with_log()
    await log.close()
    second = log.segments[1].base_offset
    place.memory.open(f"{DIR}/{layout.segment_name(0, '.log.swap')}", create=True)
    assert read_all(place.open())[0][0] == second
    assert [name for name in place.names() if name.startswith(f"{0:020d}")] == [layout.segment_name(0, ".log")]


async def test_a_swap_of_a_split_that_was_not_complete_is_undone():
    place, log = await place_with_log()
    await log.close()
    known = read_all(log)
    place.memory.open(f"{DIR}/{layout.segment_name(0, '.log.cleaned')}", create=True)
    place.memory.open(f"{DIR}/{layout.segment_name(4, '.log.swap')}", create=True).pwrite([batch(["x"])], 0)
    assert read_all(place.open()) == known


async def test_preallocated_segments():
    place, log = await place_with_log(3, preallocate=True, segment_bytes=4096)
    assert place.memory.file_size(f"{DIR}/{layout.segment_name(0, '.log')}") == 4096
    assert place.open(clean=False).log_end_offset == 6
    log = place.open(clean=False)
    await append(log, "x")
    await log.close()
    assert read_all(place.open())[-1] == (6, "x")
