"""Producer state held to a plain model: a list of everything that was appended, and the rules in a few lines."""

from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import EndTxnMarker
from kwire.protocol.records.header import BatchHeader
from kwire.storage.producer_state import ProducerStateManager, ProducerUpdate
from kwire.storage.validated import Origin

EXPIRATION = 1000
SEQUENCES = 2**31

PIDS = st.integers(1, 3)


class Appended(NamedTuple):
    """A data batch, or (sequence None) a marker."""

    pid: int
    epoch: int
    sequence: int | None
    first_offset: int
    last_offset: int
    timestamp: int
    txn: bool
    remembered: bool = True
    """Whether its sequences are; of the batch that began an open transaction a snapshot keeps the offset alone."""


class Model:
    """What is known of the producers, as the appends since they became known."""

    def __init__(self) -> None:
        self.known: dict[int, list[Appended]] = {}

    def epoch(self, pid: int) -> int:
        return self.known[pid][-1].epoch if pid in self.known else -1

    def remembered(self, pid: int) -> list[Appended]:
        """The last five data batches since the epoch last changed."""
        same = []
        for one in reversed(self.known.get(pid, [])):
            if one.epoch != self.epoch(pid):
                break
            if one.sequence is not None and one.remembered:
                same.append(one)
        return same[:5]

    def open_txn(self, pid: int) -> int | None:
        first = None
        for one in self.known.get(pid, []):
            if one.sequence is None:
                first = None
            elif one.txn and first is None:
                first = one.first_offset
        return first

    def verdict(self, one: Appended) -> ErrorCode | Appended | None:
        """A refusal, the batch that this one repeats, or None for one that may be appended."""
        assert one.sequence is not None
        length = one.last_offset - one.first_offset
        epoch = self.epoch(one.pid)
        if one.epoch == epoch:
            for old in self.remembered(one.pid):
                if old.sequence == one.sequence and old.last_offset - old.first_offset == length:
                    return old
        if one.epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if epoch != -1:
            newest = next(iter(self.remembered(one.pid)), None)
            expected = 0
            if one.epoch == epoch and newest is not None:
                assert newest.sequence is not None
                expected = (newest.sequence + newest.last_offset - newest.first_offset + 1) % SEQUENCES
            if one.sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if self.open_txn(one.pid) is not None and not one.txn:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def add(self, one: Appended) -> None:
        self.known.setdefault(one.pid, []).append(one)

    def reloaded(self, now: int) -> "Model":
        """What a snapshot keeps: epoch, last batch, open transaction, time of the last append."""
        copy = Model()
        for pid, history in self.known.items():
            open_txn = self.open_txn(pid)
            if open_txn is None and now - history[-1].timestamp >= EXPIRATION:
                continue
            newest = next(iter(self.remembered(pid)), None)
            kept = [one for one in history if one.first_offset == open_txn] if open_txn is not None else []
            if newest is not None:
                kept = [newest if one == newest else one._replace(remembered=False) for one in kept]
                if newest not in kept:
                    kept.append(newest)
            if history[-1] not in kept:
                kept.append(history[-1])
            copy.known[pid] = kept
        return copy


class ProducersAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryFileSystem()
        self.files.make_dirs("/p")
        self.state = ProducerStateManager(self.files, "/p", EXPIRATION)
        self.model = Model()
        self.now = 10_000
        self.end = 0
        self.high_watermark = 0
        self.ended: list[tuple[int, int]] = []
        self.snapshots: dict[int, Model] = {}

    @rule(
        pid=PIDS, count=st.integers(1, 4), data=st.data(), txn=st.booleans(), bump=st.sampled_from([0, 0, 0, 0, -1, 1])
    )
    def produce(self, pid: int, count: int, data: st.DataObject, txn: bool, bump: int) -> None:
        newest = next(iter(self.model.remembered(pid)), None)
        candidates = [0, 5, SEQUENCES - 2]
        if newest is not None and newest.sequence is not None:
            following = (newest.sequence + newest.last_offset - newest.first_offset + 1) % SEQUENCES
            candidates = [following, following, following, *candidates]
        candidates += [one.sequence for one in self.model.remembered(pid) if one.sequence is not None]
        sequence = data.draw(st.sampled_from(candidates))
        epoch = max(self.model.epoch(pid) + bump, 0)
        one = Appended(pid, epoch, sequence, self.end, self.end + count - 1, self.now, txn)
        header = _header(one)
        verdict = self.model.verdict(one)
        duplicate = self.state.find_duplicate(header)
        if isinstance(verdict, Appended):
            assert duplicate is not None
            assert (duplicate.first_offset, duplicate.last_offset) == (verdict.first_offset, verdict.last_offset)
            assert duplicate.timestamp == verdict.timestamp
            return
        assert duplicate is None
        following = self.state.next_of(header)
        if following is not None:
            assert verdict is None
            if data.draw(st.booleans(), "remembered without an update"):
                following.remember(header, (sequence + count - 1) % SEQUENCES, self.end)
                self.model.add(one)
                self._grow(count)
                return
        update = ProducerUpdate(self.state, Origin.CLIENT)
        if verdict is not None:
            with pytest.raises(KafkaError) as caught:
                update.append(header, self.end)
            assert caught.value.code is verdict
            return
        update.append(header, self.end)
        self.state.apply(update)
        self.model.add(one)
        self._grow(count)

    @rule(pid=PIDS, commit=st.booleans())
    def end_transaction(self, pid: int, commit: bool) -> None:
        epoch = max(self.model.epoch(pid), 0)
        one = Appended(pid, epoch, None, self.end, self.end, self.now, True)
        first = self.model.open_txn(pid)
        update = ProducerUpdate(self.state, Origin.COORDINATOR)
        update.append(_header(one), self.end, EndTxnMarker(commit, 0, self.now, self.end))
        self.state.apply(update)
        expected = [] if first is None else [(pid, first, self.end, not commit)]
        assert [tuple(completed) for completed in update.completed] == expected
        for completed in update.completed:
            others = [
                txn for other in self.model.known if other != pid and (txn := self.model.open_txn(other)) is not None
            ]
            assert self.state.last_stable_offset(completed) == min(others, default=self.end + 1)
            self.state.complete(completed)
            self.ended.append((completed.first_offset, completed.last_offset))
        self.model.add(one)
        self._grow(1)

    def _grow(self, count: int) -> None:
        self.end += count
        self.state.end_offset = self.end

    @rule(ms=st.sampled_from([1, 100, EXPIRATION - 1, EXPIRATION]))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.state.remove_expired(self.now)
        for pid in list(self.model.known):
            if self.model.open_txn(pid) is None and self.now - self.model.known[pid][-1].timestamp >= EXPIRATION:
                del self.model.known[pid]

    @rule(data=st.data())
    def replicate(self, data: st.DataObject) -> None:
        steps = {self.end, *(last for _, last in self.ended), *(last + 1 for _, last in self.ended)}
        self.high_watermark = data.draw(st.sampled_from(sorted(step for step in steps if step >= self.high_watermark)))
        self.state.on_high_watermark(self.high_watermark)
        self.ended = [(first, last) for first, last in self.ended if last >= self.high_watermark]

    @rule()
    def snapshot(self) -> None:
        before = self.state.snapshots
        self.state.take_snapshot()
        if self.state.snapshots != before:
            kept = Model()
            kept.known = {pid: history.copy() for pid, history in self.model.known.items()}
            self.snapshots[self.end] = kept

    @rule(data=st.data())
    def truncate_or_restart(self, data: st.DataObject) -> None:
        """Cut back to a snapshot (or to nothing), by the same manager or by one that starts on the files."""
        target = data.draw(st.sampled_from([0, *self.snapshots]))
        if data.draw(st.booleans()):
            self.state = ProducerStateManager(self.files, "/p", EXPIRATION)
        elif target == self.end:
            return
        self.state.truncate_and_reload(0, target, self.now)
        assert self.state.end_offset == target
        self.snapshots = {offset: model for offset, model in self.snapshots.items() if offset <= target}
        self.model = self.snapshots[target].reloaded(self.now) if target else Model()
        self.end = target
        self.ended = []
        self.high_watermark = min(self.high_watermark, target)

    @invariant()
    def the_same_is_known(self) -> None:
        assert set(self.state.entries) == set(self.model.known)
        for pid, entry in self.state.entries.items():
            remembered = self.model.remembered(pid)
            assert [batch.first_offset for batch in entry.batches] == [one.first_offset for one in reversed(remembered)]
            assert entry.epoch == self.model.epoch(pid)
            assert entry.last_timestamp == self.model.known[pid][-1].timestamp

    @invariant()
    def the_same_is_stable(self) -> None:
        open_txns = [txn for pid in self.model.known if (txn := self.model.open_txn(pid)) is not None]
        unstable = open_txns + [first for first, _ in self.ended]
        assert self.state.first_unstable_offset == min(unstable, default=None)


def _header(one: Appended) -> BatchHeader:
    count = one.last_offset - one.first_offset + 1
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=(0x10 if one.txn else 0) | (0x20 if one.sequence is None else 0),
        last_offset_delta=count - 1,
        base_timestamp=one.timestamp,
        max_timestamp=one.timestamp,
        producer_id=one.pid,
        producer_epoch=one.epoch,
        base_sequence=-1 if one.sequence is None else one.sequence,
        count=count,
    )


ProducersAgainstModel.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestProducersAgainstModel = ProducersAgainstModel.TestCase
