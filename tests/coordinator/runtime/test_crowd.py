"""Many who write at once to a log that is slow and refuses some of it: nobody waits for ever, all is as answered."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from kwire.coordinator.runtime.outcome import CoordinatorRecord, Producer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import iter_batches, read_header
from kwire.protocol.records.record import iter_records
from kwire.storage.verification import VerificationGuard
from tests.coordinator.runtime.numbers import Codec, MemoryLog, Numbers, put, shard_of

WRITERS, WRITES = 12, 8
PATIENCE = 600
"""Seconds of virtual time."""


class MoodyLog(MemoryLog):
    """Takes its time, up to more than a write is waited for, and refuses a batch now and then."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice
        self.appending = False
        self.refuses = True

    async def append(
        self, batch: bytes, *, transaction_version: int = 0, verification: VerificationGuard | None = None
    ) -> int:
        assert not self.appending
        self.appending = True
        try:
            await trio.sleep(self._dice.choice([0, 0, 0.01, 0.1, 7]))
            if self.refuses and self._dice.random() < 0.15:
                refusals = ErrorCode.INVALID_TXN_STATE, ErrorCode.NOT_ENOUGH_REPLICAS
                raise KafkaError(self._dice.choice(refusals if read_header(batch).transactional else refusals[1:]))
            return await super().append(batch, transaction_version=transaction_version, verification=verification)
        finally:
            self.appending = False


@pytest.mark.parametrize("seed", range(20))
async def test_nobody_is_forgotten(seed: int, autojump_clock: trio.testing.MockClock) -> None:
    dice = random.Random(seed)
    log = MoodyLog(dice)
    shard = await shard_of(log)
    answers: dict[str, str | ErrorCode] = {}
    in_transactions: set[str] = set()

    async def writer(number: int) -> None:
        for count in range(WRITES):
            name = f"{number}-{count}"
            more = {}
            if dice.random() < 0.2:
                in_transactions.add(name)
                more["producer"] = Producer(number, 0)
            await trio.sleep(dice.choice([0, 0, 0.005, 0.2]))
            with trio.move_on_after(dice.choice([0.001, 0.05, 1000, 1000, 1000])):
                try:
                    answers[name] = await shard.write(put(name, count, **more))
                except KafkaError as error:
                    answers[name] = error.code

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for number in range(WRITERS):
                nursery.start_soon(writer, number)
        log.refuses = False
        answers["last"] = await shard.write(put("last", 0))
    _is_as_answered(shard.machine, log, answers)
    refused = {name for name, answer in answers.items() if answer is ErrorCode.INVALID_TXN_STATE}
    assert refused <= in_transactions


def _is_as_answered(machine: Numbers, log: MemoryLog, answers: dict[str, str | ErrorCode]) -> None:
    """What is in the log is in the state, and what was answered is in both."""
    again = Numbers()
    for record, producer in _records(log):
        again.replay(record, producer)
    assert dict(again.numbers.committed_items()) == dict(machine.numbers.committed_items())
    assert dict(again.open.committed_items()) == dict(machine.open.committed_items())
    kept = {record.key for record, _ in _records(log)}
    for name, answer in answers.items():
        if answer is not ErrorCode.REQUEST_TIMED_OUT:
            assert (name in kept) is isinstance(answer, str), (name, answer)


def _records(log: MemoryLog) -> list[tuple[CoordinatorRecord, Producer | None]]:
    found: list[tuple[CoordinatorRecord, Producer | None]] = []
    for header, batch in iter_batches(log.data):
        producer = Producer(header.producer_id, header.producer_epoch) if header.transactional else None
        for record in iter_records(batch):
            assert record.key is not None
            decoded = Codec().decode(record.key, record.value)
            assert decoded is not None
            found.append((decoded, producer))
    return found
