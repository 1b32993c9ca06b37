"""A damaged batch costs itself alone: it is found and told of with file and position, and what is around it is read."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import iter_batches
from kwire.storage import layout
from kwire.storage.damage import next_batch

from .support import T0, Place, append, batch, idempotent, placed, read_all, run

DIR = "/data/t-0"
COUNT = 12
IN_HEADER = {"offset": 0, "length": 8, "high length": 11, "magic": 16}
"""Where in a batch a flipped bit leaves no header that could be trusted."""
IN_BODY = {"epoch": 13, "crc": 18, "records": 67}

everywhere = pytest.mark.parametrize("at", [*IN_HEADER.values(), *IN_BODY.values()], ids=[*IN_HEADER, *IN_BODY])
interval = pytest.mark.parametrize("interval", [0, 1 << 20], ids=["indexed", "not indexed"])


def written(segment_bytes=1 << 20, index_interval_bytes=0):
    """A closed log of batches of one record, and where in its one segment each begins."""
    place = Place(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
    log = place.open()
    for number in range(COUNT):
        run(log.append_as_leader, idempotent([f"{number}"], number), 3)
    positions = [segment.find(offset)[0] for segment in log.segments for offset in _offsets(log, segment)]
    run(log.close)
    return place, positions


def _offsets(log, segment):
    return range(segment.base_offset, log.segments.end_of(list(log.segments).index(segment), log.log_end_offset))


def flip(place, position, base_offset=0, bit=0x40):
    file = place.memory.open(f"{DIR}/{layout.segment_name(base_offset, '.log')}")
    file.pwrite([bytes([file.pread(1, position)[0] ^ bit])], position)


def forget_the_stop(place):
    """Otherwise the log is known to be as it was left."""
    for name in place.names():
        if name.endswith(".snapshot"):
            place.memory.remove(f"{DIR}/{name}")


def around(log, damaged):
    """What consumers read before a damaged offset and, seeking behind it, after it."""
    return [record[0] for record in read_all(log, 0, upto=damaged)] + [
        record[0] for record in read_all(log, damaged + 1)
    ]


def whole(damaged):
    return [offset for offset in range(COUNT) if offset != damaged]


@everywhere
@interval
@pytest.mark.parametrize("damaged", [0, 5, COUNT - 2])
def test_what_is_around_the_damage_is_read(at, interval, damaged, caplog):
    place, positions = written(index_interval_bytes=interval)
    flip(place, positions[damaged] + at)
    log = place.open()
    assert (log.log_start_offset, log.log_end_offset) == (0, COUNT)
    assert around(log, damaged) == whole(damaged)
    assert log.producer_state.entries[7].last_sequence == COUNT - 1
    assert run(append, log, "goes on") == COUNT


@everywhere
@interval
@pytest.mark.parametrize("damaged", [0, 5, COUNT - 2])
@pytest.mark.parametrize("indexes", ["kept", "lost"])
def test_recovery_goes_around_what_was_damaged_after_it_was_flushed(at, interval, damaged, indexes, caplog):
    place, positions = written(index_interval_bytes=interval)
    flip(place, positions[damaged] + at)
    if indexes == "lost":
        for name in place.names():
            if name.endswith((".index", ".timeindex")):
                place.memory.remove(f"{DIR}/{name}")
    run(place.open().close)
    forget_the_stop(place)
    log = place.open(clean=False, recovery_point=COUNT)
    assert (log.log_start_offset, log.log_end_offset) == (0, COUNT)
    assert around(log, damaged) == whole(damaged)
    if at != IN_BODY["epoch"]:  # which the checksum does not cover
        place_of_damage = f"{DIR}/{layout.segment_name(0, '.log')} is damaged at byte {positions[damaged]}"
        assert place_of_damage in caplog.text
    assert log.producer_state.entries[7].last_sequence == COUNT - 1
    assert log.epochs.entries()[-1][0] == 3 or at == IN_BODY["epoch"]


def test_a_batch_of_another_magic_is_the_clients_to_refuse():
    """As with Apache Kafka, which takes any magic from 2 on for one that it knows."""
    place, positions = written()
    flip(place, positions[5] + IN_HEADER["magic"])
    log = place.open()
    found = log.read(5, 10_000, min_one=True)
    assert (found.position, len(found.slice)) == (positions[5], log.size - positions[5])


@pytest.mark.parametrize("name", ["offset", "length"])
def test_the_damaged_batch_itself_is_refused(name):
    place, positions = written()
    flip(place, positions[5] + IN_HEADER[name])
    log = place.open()
    with pytest.raises(CorruptBatchError) as caught:
        log.read(5, 100, min_one=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert f"{layout.segment_name(0, '.log')} has no batch at byte {positions[5]}" in caught.value.message


def test_the_damage_is_told_of_once(caplog):
    place, positions = written(index_interval_bytes=1 << 20)
    flip(place, positions[5] + IN_HEADER["magic"])
    log = place.open()
    caplog.clear()
    for _ in range(3):
        read_all(log, 6)
    assert [r.levelno for r in caplog.records] in ([], [logging.ERROR])


def test_several_damaged_batches():
    place, positions = written()
    for number in (2, 3, 6):
        flip(place, positions[number] + IN_HEADER["magic"])
    for log in (place.open(), place.open(clean=False, recovery_point=COUNT)):
        assert [offset for offset, _ in read_all(log, 7)] == [7, 8, 9, 10, 11]
        assert [offset for offset, _ in read_all(log, 4, upto=6)] == [4, 5]


def test_the_end_of_a_flushed_segment_is_damaged_and_others_follow(caplog):
    place, _ = written(segment_bytes=200)
    log = place.open()
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 3
    last = bases[2] - 1
    position = log.segments[1].find(last)[0]
    run(log.close)
    flip(place, position + IN_BODY["records"], bases[1])
    place.memory.write(f"{DIR}/{layout.segment_name(0, '.txnindex')}", bytes([9]) * 34)  # has all be gone through
    again = place.open()
    assert again.log_end_offset == COUNT
    assert [offset for offset, _ in read_all(again, bases[2])] == list(range(bases[2], COUNT))
    assert f"{layout.segment_name(bases[1], '.log')} is damaged from byte {position} on" in caplog.text


@everywhere
def test_what_was_not_flushed_is_cut_at_the_damage(at, caplog):
    """It may be torn, and what lies behind it may be older or newer than what is missing."""
    if at == IN_BODY["epoch"]:
        return
    place, positions = written()
    flip(place, positions[5] + at)
    log = place.open(clean=False, recovery_point=5)
    assert log.log_end_offset == 5
    assert f"cutting {DIR}/{layout.segment_name(0, '.log')} from" in caplog.text
    assert f"to {positions[5]} bytes" in caplog.text


def test_a_batch_in_a_value_is_not_taken_for_one_of_the_log():
    """Who can choose what is in a record must not be able to choose what the log goes on with."""
    forged = placed(1, ["forged"]) + placed(2, ["forged too"]) + placed(3, ["and again"])
    genuine = [placed(0, ["a"]), placed(1, [forged]), placed(2, ["c"]), placed(3, ["d"])]
    place = Place(index_interval_bytes=0)
    path = f"{DIR}/{layout.segment_name(0, '.log')}"
    place.memory.make_dirs(DIR)
    place.memory.open(path, create=True).pwrite(genuine, 0)
    assert forged in b"".join(genuine)
    flip(place, len(genuine[0]) + IN_HEADER["magic"])
    log = place.open(clean=False, recovery_point=4)
    assert read_all(log, 2) == [(2, "c"), (3, "d")]


@given(st.binary(max_size=300), st.integers(0, 4))
def test_nothing_is_found_in_rubbish(rubbish, count):
    batches = [placed(10 + number, ["x"], timestamp=T0) for number in range(count)]
    place = Place()
    place.memory.make_dirs(DIR)
    file = place.memory.open(f"{DIR}/x", create=True)
    file.pwrite([rubbish, *batches], 0)
    behind = next_batch(file, 0, file.size(), 0)
    if behind is not None and count:
        assert behind == len(rubbish) + (len(batches[0]) if not rubbish else 0)
    assert behind is not None or count == 0 or (not rubbish and count == 1)


def test_a_damaged_batch_reaches_the_consumer_who_asks_for_it():
    """As with Apache Kafka: its checksum is the client's to verify."""
    place, positions = written()
    flip(place, positions[5] + IN_BODY["records"])
    log = place.open()
    sent = log.read(5, 1, min_one=True).slice.read()
    assert next(iter_batches(sent))[0].base_offset == 5
    assert len(batch(["x"])) > 0


@pytest.mark.parametrize("damaged", [5, COUNT - 1])
def test_a_truncation_to_what_is_damaged_takes_it_with_it(damaged):
    """The log is as long as it was cut to, and takes appends."""
    place, positions = written(index_interval_bytes=1 << 20)
    flip(place, positions[damaged] + IN_HEADER["length"])
    log = place.open()
    log.truncate_to(damaged)
    assert log.log_end_offset == damaged
    assert [offset for offset, _ in read_all(log)] == list(range(damaged))
    assert run(append, log, "new") == damaged
    assert read_all(log)[-1] == (damaged, "new")
    run(log.close)
    assert [offset for offset, _ in read_all(place.open())] == list(range(damaged + 1))


def test_producers_are_known_from_what_is_readable_after_a_truncation():
    """Though what the log begins with is damaged."""
    place, positions = written()
    forget_the_stop(place)
    flip(place, positions[0] + IN_HEADER["length"])
    log = place.open()
    log.truncate_to(COUNT - 2)
    (entry,) = log.producer_state.entries.values()
    assert (entry.last_sequence, entry.last_offset) == (COUNT - 3, COUNT - 3)
    assert log.producer_state.end_offset == log.log_end_offset == COUNT - 2
