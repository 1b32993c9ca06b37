"""Producers are refused before the volume of a log dir is full, and what makes room goes on."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.log import Log
from kwire.storage.room import Room
from kwire.storage.validated import Origin

from .house import House
from .moving.movers import ONE, TWO, a_log, moved, moving
from .support import ManualClock, append, batch, placed, read_all

MIB = 1 << 20


class Volume:
    """What the system says of volumes, by path."""

    def __init__(self, total: int, usable: int | None) -> None:
        self.total = total
        self.usable: dict[str, int | None] = {ONE: usable, TWO: usable}
        self.looks = 0

    def space(self, path: str) -> tuple[int, int]:
        self.looks += 1
        usable = self.usable[path]
        if usable is None:
            raise OSError("no such volume")
        return self.total, usable


def room_of(volume: Volume, logs: int = 10, clock: ManualClock | None = None) -> Room:
    return Room(volume, clock or ManualClock(), [ONE], lambda: logs)  # type: ignore[arg-type]


def written(room: Room, volume: Volume, size: int, most: int = 1_000_000) -> int:
    """Writes of this size until one is refused; how many were not."""
    for number in range(most):
        if not room.admits(size):
            return number
        volume.usable[ONE] -= size
    return most


def test_what_nobody_needs_is_written_where_there_is_room_for_it() -> None:
    volume = Volume(1 << 40, 9 * MIB)
    room = room_of(volume)
    assert not room.spares(1000)  # it is not known yet
    assert room.admits(1000)
    looks = volume.looks
    taken = 0
    while room.spares(1000):
        taken += 1000
        volume.usable[ONE] -= 1000
    assert volume.usable[ONE] > 4 * MIB
    assert taken > 3 * MIB
    assert volume.looks == looks
    assert written(room, volume, 1000) > 3 * MIB // 1000


@pytest.mark.parametrize(
    ("total", "logs", "kept"),
    [(1 << 40, 0, MIB), (1 << 40, 100, MIB + 100 * 32 * 1024), (10 * MIB, 100, MIB // 2), (1 * MIB, 0, MIB // 20)],
)
def test_so_much_is_kept(total: int, logs: int, kept: int) -> None:
    volume = Volume(total, 9 * kept)
    assert written(room_of(volume, logs), volume, 1000) == 8 * kept // 1000
    assert kept <= volume.usable[ONE] < kept + 1000


def test_where_there_is_much_it_is_seldom_looked() -> None:
    volume = Volume(1 << 40, 1 << 39)
    assert written(room_of(volume), volume, 100_000, 10_000) == 10_000
    assert 10 < volume.looks < 20


def test_others_write_there_too_and_make_room(caplog) -> None:
    clock, volume = ManualClock(), Volume(1 << 40, 1 << 39)
    room = room_of(volume, clock=clock)
    assert room.admits(1000)
    volume.usable[ONE] = 2 * MIB
    assert written(room, volume, 1000) <= (64 << 20) // 1000
    assert not room.admits(1)
    assert caplog.text.count("is full") == 1
    assert "log dir /one: the volume is full" in caplog.text
    volume.usable[ONE] = 100 * MIB
    looks = volume.looks
    assert not room.admits(1000)
    assert volume.looks == looks
    clock.advance(100)
    assert room.admits(1000)
    assert caplog.text.count("there is room again") == 1


def test_a_volume_of_which_nothing_is_known() -> None:
    volume = Volume(1 << 40, None)
    assert room_of(volume).admits(1000)


def test_what_is_reserved_is_not_given_to_others() -> None:
    volume = Volume(1 << 30, 100 * MIB)
    room = room_of(volume, logs=0)
    assert room.admits(1000)  # which lets more pass without a look
    reservation = room.reserve(90 * MIB)
    assert reservation is not None
    assert room.reserve(10 * MIB) is None
    with reservation:
        assert written(room, volume, MIB) == 9
        volume.usable[ONE] -= 80 * MIB
        assert reservation.wrote(80 * MIB)
        assert room.reserve(MIB) is None
        volume.usable[ONE] -= 11 * MIB
        assert not reservation.wrote(91 * MIB)  # more than was reserved, and there is no more
    volume.usable[ONE] = 12 * MIB
    assert room.reserve(11 * MIB) is not None


def test_a_reservation_that_is_exceeded_where_there_is_room() -> None:
    volume = Volume(1 << 30, 100 * MIB)
    room = room_of(volume, logs=0)
    with room.reserve(MIB) as reservation:  # type: ignore[union-attr]
        volume.usable[ONE] -= 2 * MIB
        assert reservation.wrote(2 * MIB)
        assert room.reserve(97 * MIB) is not None


def test_who_asks_for_too_much_does_not_make_the_dir_full(caplog: pytest.LogCaptureFixture) -> None:
    """And a cache leaves more than others do."""
    volume = Volume(1 << 30, 10 * MIB)
    room = room_of(volume, logs=0)
    assert room.reserve(20 * MIB) is None
    assert room.reserve(int(8.5 * MIB), for_cache=True) is None
    assert not caplog.messages
    assert room.admits(8 * MIB)
    assert room.spare == 9 * MIB
    volume.usable[ONE] = None
    assert room.reserve(20 * MIB) is not None


async def refused(log: Log, **options: object) -> None:
    with pytest.raises(KafkaError) as caught:
        await log.append_as_leader(batch(["x" * 1000]), 0, **options)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    house = House([ONE, TWO])
    house.volume = Volume(1 << 30, 1 << 30)  # type: ignore[attr-defined]
    monkeypatch.setattr(house.files, "space", lambda path: house.volume.space(path))  # type: ignore[attr-defined]
    monkeypatch.setattr(house.files, "volume", [ONE, TWO].index)
    return house


async def test_a_full_dir_is_read_and_the_other_written(house: House) -> None:
    house.volume.usable[ONE] = 0  # type: ignore[attr-defined]
    managed = await house.start()
    log = await a_log(managed, segment_bytes=1_000_000)
    other = await a_log(managed, 1, managed.dirs[1])
    await refused(log)
    with pytest.raises(KafkaError):
        await log.append_as_follower(placed(0, ["a"]))
    assert (log.log_end_offset, managed.dirs[0].online) == (0, True)
    assert await append(other, "a") == 0
    house.volume.usable[ONE] = 1 << 30  # type: ignore[attr-defined]
    house.clock.advance(1000)
    assert await append(log, "a", "b") == 0
    house.volume.usable[ONE] = MIB  # type: ignore[attr-defined]
    while True:
        try:
            await append(log, "x" * 100_000)
        except KafkaError:
            break
    assert read_all(log, 0, 2) == [(0, "a"), (1, "b")]
    # What coordinators write goes on for longer, but not until nothing is left.
    end = log.log_end_offset
    info = await log.append_as_leader(batch(["offsets"]), 0, origin=Origin.COORDINATOR)
    assert info.first_offset == end
    house.volume.usable[ONE] = MIB // 2  # type: ignore[attr-defined]
    await refused(log)  # so that what may be written without a look is void
    await refused(log, origin=Origin.COORDINATOR)
    await log.append_as_leader(batch(["copied away"]), 0, origin=Origin.TIERING)  # so that it can be deleted here
    house.volume.usable[ONE] = 2 * MIB  # type: ignore[attr-defined]
    house.clock.advance(1000)
    await log.append_as_leader(batch(["offsets"]), 0, origin=Origin.COORDINATOR)
    await refused(log)
    assert managed.dirs[0].online
    log.set_high_watermark(end)
    assert await log.delete_old_segments(house.clock.now) == 0
    await house.stop(managed)
    assert read_all((await house.start()).logs["t", 0])[:2] == [(0, "a"), (1, "b")]


def test_what_producers_write_is_seen_by_coordinators() -> None:
    """They looked when there was much, and what they were to write without another look is gone."""
    volume = Volume(1 << 40, 20 * MIB)
    room = room_of(volume, logs=0)
    room.check(1000, coordinator=True)
    written(room, volume, 100_000)
    with suppress(KafkaError):
        while volume.usable[ONE]:
            room.check(1000, coordinator=True)
            volume.usable[ONE] -= 1000
    assert MIB // 2 <= (volume.usable[ONE] or 0) < MIB // 2 + 1000


async def test_dirs_on_one_volume_share_its_room(caplog: pytest.LogCaptureFixture) -> None:
    """All of them together keep it from being full, however many they are."""
    dirs = [f"/{name}" for name in "abcde"]
    house = House(dirs)
    volume = Volume(32 * MIB, 10 * MIB)
    volume.usable = dict.fromkeys(dirs, 10 * MIB)
    house.files.space = volume.space  # type: ignore[method-assign]
    managed = await house.start()
    logs = [
        await a_log(managed, number, log_dir, segment_bytes=1_000_000) for number, log_dir in enumerate(managed.dirs)
    ]
    kept = MIB + len(logs) * 32 * 1024
    refusals: list[ErrorCode] = []
    while len(refusals) < len(logs):
        refusals = []
        for log in logs:
            try:
                await append(log, "x" * 20_000)
            except KafkaError as error:
                refusals.append(error.code)
            else:
                volume.usable = {path: (usable or 0) - 20_100 for path, usable in volume.usable.items()}
    assert set(refusals) == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert kept <= (volume.usable["/a"] or 0) < kept + 30_000
    assert caplog.text.count("log dirs /a, /b, /c, /d, /e: the volume is full") == 1


async def test_a_move_to_a_full_dir_waits(house: House, autojump_clock) -> None:
    managed = await house.start()
    log = await a_log(managed, segment_bytes=100_000)
    for _ in range(50):
        await append(log, "x" * 1000)
    house.volume.usable[TWO] = 0  # type: ignore[attr-defined]
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        await trio.sleep(60)
        assert log.log_dir is managed.dirs[0]
        assert managed.dirs[1].online
        house.volume.usable[TWO] = 1 << 30  # type: ignore[attr-defined]
        house.clock.advance(1000)
        await trio.sleep(2)
        await moved(log, managed.dirs[1])
    assert len(read_all(log)) == 50


async def test_what_goes_while_a_move_waits_for_room_is_not_missed(house: House, autojump_clock) -> None:
    """It waits amid the segment that retention removes then."""
    managed = await house.start()
    log = await a_log(managed, segment_bytes=2_000_000, file_delete_delay_ms=0)
    for _ in range(40):
        await append(log, "x" * 100_000)
    log.set_high_watermark(40)
    house.volume.usable[TWO] = MIB + 500_000  # type: ignore[attr-defined]  # for a little, not for a piece
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        await trio.sleep(5)
        assert managed.moves.futures["t", 0].copies, "it waits before the first segment"
        assert log.advance_log_start(log.segments[1].base_offset)
        assert await log.delete_old_segments(house.clock.now) == 1
        house.volume.usable[TWO] = 1 << 30  # type: ignore[attr-defined]
        house.clock.advance(1000)
        await trio.sleep(3)
        assert [log_dir.online for log_dir in managed.dirs] == [True, True]
        await moved(log, managed.dirs[1])
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_start_offset, 40))
