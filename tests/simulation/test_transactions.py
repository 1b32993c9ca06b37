"""Transactions over two brokers: the coordinator on one, a partition on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from kwire.cluster.replica import Bound
from kwire.metadata.changes import PartitionChanged
from kwire.metadata.names import TRANSACTION_STATE
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kwire.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kwire.protocol.messages.end_txn import EndTxnRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record

from .world import World, world

PATIENCE = 60
VERIFIED, ADDED = 11, 12
"""Versions of Produce by which the client, and by which the broker adds the partition to the transaction."""


class Client:
    """A transactional producer, and the connections that it needs."""

    def __init__(self, w: World) -> None:
        self.w = w
        self.id = -1
        self.epoch = -1
        self.coordinator = -1

    async def call(self, broker: int, request: Any, version: int | None = None) -> Any:
        connection = await self.w.connect(broker)
        try:
            return await connection.call(request, version)
        finally:
            connection.close()

    async def find(self) -> int:
        """The broker that coordinates."""
        answer = await self.call(1, FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 6)
        self.coordinator = answer.coordinators[0].node_id
        return self.coordinator

    async def init(self) -> None:
        while True:
            request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
            answer = await self.call(self.coordinator, request)
            if not answer.error_code:
                break
            await trio.sleep(0.1)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    async def add(self, topic: str) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        answer = await self.call(self.coordinator, request, 3)
        return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    async def write(self, topic: str, value: bytes, version: int = ADDED) -> ErrorCode:
        leader = self.w.state(topic).leader
        blob = build_batch(
            [Record(0, self.w.brokers[leader].clock.wall_ms(), None, value, [])],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=0,
            transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=blob)])
        request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=[data])
        answer = await self.call(leader, request, version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def end(self, *, commit: bool = True) -> ErrorCode:
        request = EndTxnRequest(transactional_id="t", producer_id=self.id, producer_epoch=self.epoch, committed=commit)
        answer = await self.call(self.coordinator, request)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code)

    async def state(self) -> str:
        answer = await self.call(self.coordinator, DescribeTransactionsRequest(transactional_ids=["t"]))
        text: str = answer.transaction_states[0].transaction_state
        return text

    async def until(self, state: str) -> None:
        with trio.fail_after(PATIENCE):
            while True:
                if await self.state() == state:
                    return
                await trio.sleep(0.1)


@asynccontextmanager
async def two_brokers(**settings: str) -> AsyncIterator[tuple[World, Client, int, int]]:
    """The world, a client that may begin, the coordinator's id, and that of the other broker, which leads topic t."""
    async with world(1, 2, transaction_state_log_num_partitions="1", **settings) as w:
        client = Client(w)
        here = await client.find()
        there = 3 - here
        await w.create("t", [there])
        await client.init()
        yield w, client, here, there


async def test_records_and_markers_cross_from_broker_to_broker(autojump_clock):
    async with two_brokers() as (w, client, _here, there):
        for commit in (True, False):
            assert await client.write("t", b"one") is ErrorCode.NONE
            assert await client.end(commit=commit) is ErrorCode.NONE
            await client.until("CompleteCommit" if commit else "CompleteAbort")
        assert (w.log(there).last_stable_offset, w.log(there).log_end_offset) == (4, 4)
        read = await w.brokers[there].replicas.partition("t", 0).fetch(0, 1 << 20, Bound.LAST_STABLE_OFFSET)
        assert [transaction.first_offset for transaction in read.aborted or ()] == [2]


async def test_the_next_transaction_waits_for_the_markers_of_the_one_before(autojump_clock):
    async with two_brokers() as (w, client, _here, there):
        for _ in range(5):
            assert await client.write("t", b"one") is ErrorCode.NONE
            assert await client.end() is ErrorCode.NONE
        await client.until("CompleteCommit")
        assert w.log(there).last_stable_offset == 10


async def test_what_the_client_added_is_verified_with_the_coordinator(autojump_clock):
    async with two_brokers() as (_w, client, _here, _there):
        assert await client.write("t", b"one", VERIFIED) is ErrorCode.TRANSACTION_ABORTABLE
        assert await client.add("t") is ErrorCode.NONE
        assert await client.write("t", b"one", VERIFIED) is ErrorCode.NONE
        client.epoch += 1
        assert await client.write("t", b"two", VERIFIED) is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_while_brokers_cannot_reach_each_other_markers_wait(autojump_clock):
    async with two_brokers(request_timeout_ms="1000") as (w, client, here, there):
        assert await client.write("t", b"one") is ErrorCode.NONE
        w.cut(here, there)
        assert await client.end() is ErrorCode.NONE
        await trio.sleep(30)
        assert await client.state() == "PrepareCommit"
        assert w.log(there).last_stable_offset == 0
        w.heal(here, there)
        await client.until("CompleteCommit")
        assert w.log(there).last_stable_offset == 2


async def test_while_the_coordinator_cannot_be_reached_records_are_refused(autojump_clock):
    async with two_brokers(request_timeout_ms="1000") as (w, client, here, there):
        w.cut(here, there)
        assert await client.write("t", b"one") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert w.log(there).log_end_offset == 0
        w.heal(here, there)
        assert await client.write("t", b"one") is ErrorCode.NONE


async def test_another_coordinator_goes_on_with_what_was_decided(autojump_clock):
    async with two_brokers(transaction_state_log_replication_factor="2", transaction_state_log_min_isr="1") as (
        w,
        client,
        here,
        there,
    ):
        await w.create("u", [here])
        assert await client.write("t", b"one") is ErrorCode.NONE
        assert await client.write("u", b"one") is ErrorCode.NONE
        await lead(w, "t", -1)
        assert await client.end() is ErrorCode.NONE
        await trio.sleep(5)
        assert await client.state() == "PrepareCommit"
        assert w.log(here, "u").last_stable_offset == 2  # its marker is written, that of t is not
        await w.elect(there, TRANSACTION_STATE)
        assert await client.find() == there
        await lead(w, "t", there)
        await client.until("CompleteCommit")
        assert w.log(there, "t").last_stable_offset == 2
        assert w.log(here, "u").last_stable_offset == w.log(here, "u").log_end_offset
        assert await client.write("u", b"two") is ErrorCode.NONE
        assert await client.end(commit=False) is ErrorCode.NONE
        await client.until("CompleteAbort")


async def test_markers_wait_until_the_decision_is_replicated(autojump_clock):
    """A coordinator that has just come may be lost again, and with it what only it has read."""
    async with two_brokers(transaction_state_log_replication_factor="2", transaction_state_log_min_isr="1") as (
        w,
        client,
        here,
        there,
    ):
        assert await client.write("t", b"one") is ErrorCode.NONE
        await lead(w, "t", -1)
        assert await client.end() is ErrorCode.NONE
        w.cut(here, there)
        w.log(there, TRANSACTION_STATE).set_high_watermark(0)  # as if it had not heard of it
        await w.elect(there, TRANSACTION_STATE)
        await lead(w, "t", there)
        await trio.sleep(5)
        assert w.log(there, "t").last_stable_offset == 0
        w.heal(here, there)
        assert await client.find() == there
        await client.until("CompleteCommit")
        assert w.log(there, "t").last_stable_offset == 2


async def test_a_partition_without_a_leader_holds_the_end_back(autojump_clock):
    async with two_brokers() as (w, client, _here, there):
        assert await client.write("t", b"one") is ErrorCode.NONE
        await lead(w, "t", -1)
        assert await client.end() is ErrorCode.NONE
        await trio.sleep(30)
        assert await client.state() == "PrepareCommit"
        await lead(w, "t", there)
        await client.until("CompleteCommit")
        assert w.log(there, "t").last_stable_offset == 2


async def lead(w: World, topic: str, leader: int) -> None:
    """Begins a leader epoch with that leader, -1 for none; the ISR stays."""
    state = w.state(topic)
    after = replace(
        state, leader=leader, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1
    )
    await w.brokers[1].store.commit([PartitionChanged(topic, 0, after)])
