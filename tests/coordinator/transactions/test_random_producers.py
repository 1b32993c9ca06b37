"""Producers that come, write, end, die and come again, under coordinators that fail and change: what always holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.completion import complete
from kwire.coordinator.transactions.effects import MarkersDue
from kwire.coordinator.transactions.states import PREVIOUS, TransactionState
from kwire.coordinator.transactions.timeouts import abort
from kwire.coordinator.transactions.transaction import LAST_EPOCH, Transaction
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.transactions.stage import Stage

IDS = st.sampled_from(["a", "b"])
PARTITIONS = st.sets(st.integers(0, 3), min_size=1)
VERSIONS = st.sampled_from([0, 2])

AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

EXPECTED = {
    ErrorCode.NONE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Partition:
    """What a partition's leader has of one producer id: an open transaction, and the epoch of its last batch."""

    def __init__(self) -> None:
        self.epoch = -1
        self.open = False
        self.committed: bool | None = None
        """How the last transaction ended; None while one is open."""


class Producers(RuleBasedStateMachine):
    """Each transactional id has had several producers, each of which may still believe that it is the one."""

    @initialize(version=st.sampled_from([0, 1, 2]))
    def start(self, version: int) -> None:
        self.stage = Stage(version)
        self.known: dict[str, list[Producer]] = defaultdict(list)
        self.last: dict[str, Transaction] = {}
        """By transactional id, as its last record has it."""
        self.seen = 0
        self.completing: list[MarkersDue] = []
        """Those whose end is on its way; it is written again where that fails."""
        self.partitions: dict[tuple[int, int], Partition] = defaultdict(Partition)
        """By partition and producer id."""

    # What happens

    @rule(transactional_id=IDS, goes_on=st.booleans(), who=st.integers(0, 9), timeout=st.integers(1, 100_000))
    def init(self, transactional_id: str, goes_on: bool, who: int, timeout: int) -> None:
        expected = self._who(transactional_id, who) if goes_on else None
        for producer in self._answers(self.stage.init, transactional_id, expected, timeout):
            self.known[transactional_id].append(producer)

    @rule(transactional_id=IDS, who=st.integers(0, 9), partitions=PARTITIONS, version=VERSIONS)
    def add_and_write(self, transactional_id: str, who: int, partitions: set[int], version: int) -> None:
        producer = self._who(transactional_id, who)
        answers = self._answers(
            self.stage.add,
            producer,
            *partitions,
            transactional_id=transactional_id,
            client_version=min(version, self.stage.version),
        )
        if not answers:
            return
        # Whoever may add may write: nobody else has.
        assert self.stage.transaction(transactional_id).producer == producer
        for partition in partitions:
            log = self.partitions[partition, producer.id]
            assert log.epoch <= producer.epoch
            log.epoch, log.open, log.committed = producer.epoch, True, None

    @rule(transactional_id=IDS, who=st.integers(0, 9), commit=st.booleans(), version=VERSIONS)
    def end(self, transactional_id: str, who: int, commit: bool, version: int) -> None:
        producer = self._who(transactional_id, who)
        before = self.stage.machine.transactions.get(transactional_id)
        client_version = min(version, self.stage.version)
        answers = self._answers(
            self.stage.end,
            producer,
            commit=commit,
            transactional_id=transactional_id,
            client_version=client_version,
        )
        if not answers:
            return
        assert before is not None
        if before.state is TransactionState.ONGOING:
            assert before.producer == producer  # no zombie ends the transaction of another
        if client_version == 2:
            self.known[transactional_id] += answers

    @precondition(lambda self: self.stage.noted.due)
    @rule(number=st.integers(0, 9), some=st.integers(0, 4), crash=st.booleans())
    def write_markers(self, number: int, some: int, crash: bool) -> None:
        """Writes markers to some partitions, or to all and then the end."""
        due = self.stage.noted.due[number % len(self.stage.noted.due)]
        transaction = due.transaction
        partitions = sorted(transaction.partitions)
        written = partitions[:some] if crash else partitions
        for _, partition in written:
            self._mark(partition, due)
        if not crash:
            self.stage.noted.due.remove(due)
            self.stage.do(complete, due)
            if not self.stage.commits:
                self.completing.append(due)
            for _, partition in partitions:
                assert not self.partitions[partition, transaction.producer_id].open

    def _mark(self, partition: int, due: MarkersDue) -> None:
        """What a partition's leader demands of a marker."""
        transaction = due.transaction
        log = self.partitions[partition, transaction.producer_id]
        if transaction.client_version == 2 and log.open and transaction.epoch < LAST_EPOCH:
            assert transaction.epoch > log.epoch
        else:
            assert transaction.epoch >= log.epoch
        assert log.committed in (None, transaction.commits)
        log.epoch, log.open, log.committed = transaction.epoch, False, transaction.commits

    @rule()
    def another_coordinator(self) -> None:
        before = dict(self.stage.machine.transactions.committed_items())
        self.stage.reload()
        self.completing.clear()
        assert dict(self.stage.machine.transactions.items()) == before

    @rule()
    def writes_stall(self) -> None:
        self.stage.commits = False

    @rule()
    def writes_go_on(self) -> None:
        self.stage.commits = True
        self.stage.commit()
        self.completing.clear()

    @rule()
    def writes_fail(self) -> None:
        self.stage.commits = True
        self.stage.fail()
        self.stage.noted.due += self.completing
        self.completing.clear()

    @rule(ms=st.integers(0, 50_000))
    def time_passes(self, ms: int) -> None:
        self.stage.pass_time(ms)
        late, self.stage.noted.late = self.stage.noted.late, []
        for transactional_id, producer in late:
            self._answers(self.stage.do, abort, transactional_id, producer)

    @rule(transactional_id=IDS)
    def epochs_run_out(self, transactional_id: str) -> None:
        found = self.stage.machine.transactions.get(transactional_id)
        if (
            found is not None
            and found.state in AT_REST
            and found.epoch < LAST_EPOCH - 2
            and not self.stage.machine.pending(transactional_id)
            and self.stage.commits
        ):
            self.known[transactional_id].append(self.stage.set_epoch(LAST_EPOCH - 2, transactional_id))

    def _answers(self, operation: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
        """What the client is answered; nothing with an error, or while writes are not committed."""
        code = ErrorCode.NONE
        try:
            answer = operation(*args, **options)
        except KafkaError as error:
            code = error.code
        assert code in EXPECTED
        return [answer] if code is ErrorCode.NONE and self.stage.commits else []

    def _who(self, transactional_id: str, who: int) -> Producer:
        known = self.known[transactional_id]
        return known[-1 - who % len(known)] if known else Producer(1, 0)

    # What holds

    @invariant()
    def records_follow_each_other(self) -> None:
        """So that a decision is never changed, and an epoch never goes back."""
        for key, value in self.stage.log[self.seen :]:
            transactional_id, after = self.stage.decoded(key, value)
            before = self.last.get(transactional_id)
            if after is None:
                assert before is None or before.state in AT_REST
                self.last.pop(transactional_id, None)
                continue
            self.last[transactional_id] = after
            if before is None:
                assert after.state is TransactionState.EMPTY
                continue
            assert before.state in PREVIOUS[after.state]
            assert after.producer_id >= before.producer_id
            if after.producer_id == before.producer_id:
                assert after.epoch >= before.epoch
            if before.state is TransactionState.ONGOING:
                assert after.partitions >= before.partitions
        self.seen = len(self.stage.log)

    @invariant()
    def what_is_due_was_decided(self) -> None:
        for due in self.stage.noted.due:
            found = self.stage.machine.transactions.committed(due.transactional_id)
            assert found == due.transaction

    @invariant()
    def whatever_is_decided_waits_for_its_markers(self) -> None:
        waiting = {due.transactional_id for due in self.stage.noted.due}
        assert len(waiting) == len(self.stage.noted.due)
        for transactional_id, found in self.stage.machine.transactions.committed_items():
            pending = self.stage.machine.transactions.get(transactional_id) is not found
            if found.state.prepared and not pending:
                assert transactional_id in waiting

    @invariant()
    def what_is_open_in_a_partition_is_known_to_the_coordinator(self) -> None:
        listed = {
            (partition, found.producer_id)
            for _, found in self.stage.machine.transactions.committed_items()
            for _, partition in found.partitions
        }
        for key, log in self.partitions.items():
            if log.open:
                assert key in listed, key

    @invariant()
    def the_epoch_kept_for_the_coordinator_is_never_a_clients(self) -> None:
        for producers in self.known.values():
            assert all(producer.epoch < LAST_EPOCH for producer in producers)


Producers.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestProducers = Producers.TestCase
