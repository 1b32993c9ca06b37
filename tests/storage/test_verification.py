"""Which batches may begin a transaction on a partition (KIP-890)."""

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.log import AppendInfo, Log
from kwire.storage.validated import Origin
from kwire.storage.verification import VerificationGuard

from .support import Place, idempotent, marker, run

INVALID = ErrorCode.INVALID_TXN_STATE
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class VerifyingLog:
    """A log that demands guards, and one producer in front of it."""

    def __init__(self, *, verifies: bool = True) -> None:
        self.place = Place()
        self.place.verifies_transactions = verifies
        self.log: Log = self.place.open()

    def begin(self, sequence: int = 0, epoch: int = 0, *, bumps: bool = True) -> VerificationGuard | None:
        return self.log.begin_verification(7, sequence, epoch, supports_epoch_bump=bumps)

    def append(
        self,
        guard: VerificationGuard | None = None,
        sequence: int = 0,
        epoch: int = 0,
        *,
        transactional: bool = True,
        origin: Origin = Origin.CLIENT,
    ) -> AppendInfo:
        data = idempotent(["a", "b"], sequence, epoch=epoch, transactional=transactional)
        info = run(self.log.append_as_leader, data, 0, origin=origin, verification=guard)
        assert isinstance(info, AppendInfo)
        return info

    def end(self, epoch: int = 0) -> None:
        run(self.log.append_as_leader, marker(epoch=epoch, commit=True), 0, origin=Origin.COORDINATOR)

    def refused(self, *arguments: object, **options: object) -> ErrorCode:
        end = self.log.log_end_offset
        with pytest.raises(KafkaError) as caught:
            self.append(*arguments, **options)  # type: ignore[arg-type]
        assert self.log.log_end_offset == end
        return caught.value.code


@pytest.fixture
def log() -> VerifyingLog:
    return VerifyingLog()


@pytest.mark.parametrize("origin", [Origin.CLIENT, Origin.COORDINATOR])
def test_a_transaction_begins_with_its_guard_and_goes_on_without(log: VerifyingLog, origin: Origin) -> None:
    assert log.refused(origin=origin) is INVALID
    guard = log.begin()
    assert guard is not None
    assert log.refused(VerificationGuard(), origin=origin) is INVALID
    log.append(guard, origin=origin)
    assert log.begin(2) is None  # the transaction writes here already
    log.append(None, 2, origin=origin)
    log.end()
    assert log.refused(None, 4, origin=origin) is INVALID
    assert log.refused(guard, 4, origin=origin) is INVALID


def test_attempts_at_the_same_time_share_a_guard(log: VerifyingLog) -> None:
    assert log.begin() is log.begin(2)


def test_a_marker_takes_the_guard_away(log: VerifyingLog) -> None:
    """What the coordinator answers then is of a transaction that is over."""
    guard = log.begin(bumps=False)
    log.end()
    assert log.refused(guard) is INVALID
    assert log.begin(bumps=False) is not guard


def test_a_marker_of_the_transaction_before_leaves_the_guard(log: VerifyingLog) -> None:
    """With an epoch for each transaction it has that of the next one, and may come again while that one begins."""
    log.append(log.begin(epoch=3), epoch=3)
    guard = log.begin(epoch=4)
    log.end(epoch=4)
    log.end(epoch=4)
    assert log.begin(epoch=4) is guard
    log.append(guard, epoch=4)


def test_a_marker_of_the_very_transaction_takes_it_away_with_an_epoch_for_each_too(log: VerifyingLog) -> None:
    guard = log.begin(epoch=4)
    log.end(epoch=5)
    assert log.refused(guard, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refused(guard, epoch=5) is INVALID


def test_what_a_follower_or_a_recovery_takes_up_has_been_verified(log: VerifyingLog) -> None:
    run(log.log.append_as_follower, idempotent(["a"], 0, transactional=True))
    log.place.memory.kill_holder()
    assert log.place.open(clean=False).producer_state.first_unstable_offset == 0


def test_without_a_transaction_nothing_is_verified(log: VerifyingLog) -> None:
    log.append(transactional=False)


def test_an_older_epoch_is_told_before_anything_is_verified(log: VerifyingLog) -> None:
    log.append(log.begin(epoch=3), epoch=3)
    with pytest.raises(KafkaError) as caught:
        log.begin(epoch=2)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.refused(epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_older_epochs_transaction_is_not_this_ones(log: VerifyingLog) -> None:
    log.append(log.begin())
    assert log.refused(epoch=1) is INVALID
    guard = log.begin(epoch=1)
    assert guard is not None


def test_a_batch_sent_again_needs_no_guard(log: VerifyingLog) -> None:
    first = log.append(log.begin())
    log.end()
    again = log.append()
    assert again.duplicate
    assert again.first_offset == first.first_offset


def test_the_lowest_sequence_that_waits_comes_first(log: VerifyingLog) -> None:
    guard = log.begin(4, bumps=False)
    assert log.begin(2, bumps=False) is guard
    log.begin(6, bumps=False)
    assert log.refused(guard, 4) is OUT_OF_ORDER
    log.append(guard, 2)
    log.append(None, 4)


def test_a_new_epoch_begins_its_sequences_anew(log: VerifyingLog) -> None:
    guard = log.begin(0, bumps=False)
    assert log.begin(5, epoch=1, bumps=False) is guard
    log.append(guard, 5, epoch=1)


def test_with_an_epoch_of_its_own_a_transaction_begins_with_sequence_0(log: VerifyingLog) -> None:
    assert log.refused(log.begin(5), 5) is OUT_OF_ORDER
    log.append(log.begin(0), 0)


def test_a_transaction_of_version_1_goes_on_with_its_sequences(log: VerifyingLog) -> None:
    log.append(log.begin(5, bumps=False), 5)  # of an unknown producer any sequence is taken
    log.end()
    log.append(log.begin(7, bumps=False), 7)


def test_an_attempt_of_which_nothing_came_is_forgotten_in_time(log: VerifyingLog) -> None:
    guard = log.begin()
    state, clock = log.log.producer_state, log.place.clock
    clock.advance(state.expiration_ms - 1)
    state.remove_expired(clock.wall_ms())
    assert log.begin() is guard
    clock.advance(1)
    state.remove_expired(clock.wall_ms())
    assert log.refused(guard) is INVALID
    assert log.begin() is not guard


def test_where_nothing_is_verified_any_transaction_is_taken() -> None:
    log = VerifyingLog(verifies=False)
    log.append()
    assert log.begin(2) is None
    log.end()
    assert log.refused(epoch=-1) is ErrorCode.INVALID_PRODUCER_EPOCH
