"""Random work on a log that moves to and fro, and a kill at any change of a file: nothing acknowledged is missing."""

from __future__ import annotations

import random

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.protocol.errors import KafkaError
from kwire.storage import checkpoints, layout
from kwire.storage.log import Log
from kwire.storage.manager import LogManager
from tests.storage.house import House
from tests.storage.support import idempotent, read_all

from .movers import ONE, TWO, Killed, a_log, folders, moving

PRODUCER = 7


class Work:
    """What was done to the log, and what of it was acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.house = House([ONE, TWO])
        self.acknowledged: list[tuple[int, str]] = []
        self.possible: list[tuple[int, str]] = []
        """Likewise, with what was under way when the process ended."""
        self.sequence = 0
        self.batches: list[int] = []
        """Where each begins."""

    def kill_after(self, changes: int) -> None:
        left = changes

        def fault(operation: str, path: str, size: int) -> None:
            nonlocal left
            left -= operation in ("write", "rename", "truncate", "remove", "sync", "make_dirs")
            if left < 0:
                raise Killed

        self.house.files.fault = fault

    async def run(self, changes: int, turns: int) -> None:
        managed = await self.house.start()
        log = await a_log(managed, segment_bytes=400)
        self.kill_after(changes)
        try:
            async with moving(managed):
                for _ in range(turns):
                    await self._step(managed, log)
                    await trio.lowlevel.checkpoint()
        except* Killed:
            pass
        self.house.kill()
        self.house.files.fault = None

    async def _step(self, managed: LogManager, log: Log) -> None:
        chosen = self.random.random()
        if chosen < 0.7:
            await self._append(log)
        elif chosen < 0.75:
            self._truncate(log)
        elif chosen < 0.8:
            log.set_high_watermark(log.log_end_offset)
            log.advance_log_start(self.random.randint(log.log_start_offset, log.log_end_offset))
            await log.delete_old_segments(self.house.clock.now)
        elif chosen < 0.85:
            await log.flush()
        elif chosen < 0.9:
            await managed.upkeep.checkpoint_dir(log.log_dir)
        elif chosen < 0.95:
            await managed.upkeep.write_high_watermarks()
        else:
            await managed.moves.move(log, self.random.choice(managed.dirs))

    async def _append(self, log: Log) -> None:
        end = log.log_end_offset
        values = [f"{end + n}-{self.random.random()}" for n in range(self.random.randint(1, 4))]
        records = [(end + n, value) for n, value in enumerate(values)]
        self.possible = self.acknowledged + records
        info = await log.append_as_leader(idempotent(values, self.sequence, PRODUCER), 0)
        assert info.first_offset == end
        self.sequence += len(values)
        self.acknowledged = self.possible
        self.batches.append(end)

    def _truncate(self, log: Log) -> None:
        boundaries = [offset for offset in self.batches if offset >= log.log_start_offset]
        if boundaries:
            offset = self.random.choice(boundaries)
            self.possible = self.acknowledged
            self.acknowledged = [record for record in self.acknowledged if record[0] < offset]
            self.batches = [start for start in self.batches if start < offset]
            log.truncate_to(offset)
            self.possible = self.acknowledged
            state = log.producer_state.entries.get(PRODUCER)
            self.sequence = 0 if state is None else state.last_sequence + 1
            assert log.log_end_offset == offset

    async def check(self) -> None:
        """A new process finds the log once, with what was acknowledged and at most what was under way."""
        managed = await self.house.start()
        log = managed.logs["t", 0]
        assert len(folders(self.house, ONE) + folders(self.house, TWO)) == 1
        found = read_all(log)
        start = log.log_start_offset
        least = [record for record in self.acknowledged if record[0] >= start]
        most = [record for record in self.possible if record[0] >= start]
        shorter, longer = sorted((least, most), key=len)
        assert found == longer[: len(found)]
        assert len(found) >= len(shorter)
        await self._check_high_watermarks(managed)
        if not managed.moves.futures:
            return
        target = managed.moves.futures["t", 0].log_dir
        async with moving(managed):
            while log.log_dir is not target:
                await trio.lowlevel.checkpoint()
        assert read_all(log) == found
        for root in self.house.dirs:
            assert folders(self.house, root, layout.FUTURE_DIR) == []
        await self._check_high_watermarks(managed)

    async def _check_high_watermarks(self, managed: LogManager) -> None:
        await managed.upkeep.write_high_watermarks()
        for log_dir in managed.dirs:
            said = checkpoints.decode_offsets(self.house.files.read(log_dir.file(layout.HIGH_WATERMARKS)))
            assert said == {kept.key: kept.high_watermark for kept in managed.kept_in(log_dir)}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), changes=st.integers(0, 400))
def test_a_kill_at_any_moment(seed: int, changes: int) -> None:
    async def main() -> None:
        work = Work(seed)
        await work.run(changes, turns=120)
        await work.check()

    trio.run(main)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_to_and_fro(seed: int) -> None:
    async def main() -> None:
        work = Work(seed)
        try:
            await work.run(10**9, turns=400)
        except KafkaError as error:  # pragma: no cover
            raise AssertionError(f"a dir failed: {error}") from error
        await work.check()

    trio.run(main)
