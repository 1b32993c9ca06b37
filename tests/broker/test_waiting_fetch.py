"""A Fetch without a session that is known from an earlier one, and waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.apis import fetch
from kwire.broker.fetch_without_session import FetchWithoutSession
from kwire.broker.waiting_fetch import WaitingFetch
from kwire.cluster.partition import Partition
from kwire.ports.memory_files import MemoryFile
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import AbortedTransaction, PartitionData
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.protocol.records.header import iter_batches
from tests.broker.foreseen import note_known
from tests.broker.raw_fetch import NEWEST, request, told
from tests.broker.raw_produce import Producer, batch
from tests.broker.raw_produce import request as request_to_produce
from tests.broker.scene import Scene, running

pytestmark = pytest.mark.plain  # who answers is found out by a change to `Templates`

WAIT_MS = 30_000
END = 3
"""Of each partition, in which there is a batch of three records."""


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each Fetch that may have been known: whether a template answered it, or had it wait."""
    return note_known(monkeypatch, ApiKey.FETCH)


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time (ms) that is left to each that waited and was given to the handler."""
    times: list[int] = []
    handle = fetch.handle

    def noting(broker: Any, call: Any, request: Any, *found: Any) -> Any:
        if found:
            times.append(request.max_wait_ms)
        return handle(broker, call, request, *found)

    monkeypatch.setattr(fetch, "handle", noting)
    return times


class Waiting:
    """A consumer whose requests are known, and that reads from the end."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.producer = Producer(scene)

    async def made_known(self, **fields: Any) -> None:
        for _ in range(4):
            (answer,) = await self.producer.send(request(self.scene, [(0, 0)], max_wait_ms=WAIT_MS, **fields))
            assert told(answer, fields.get("version", NEWEST))[0].error_code == 0

    @asynccontextmanager
    async def asking(self, *frames: bytes) -> AsyncIterator[list[bytes]]:
        """Within it these requests wait; behind it there are the answers."""
        answers: list[bytes] = []

        async def wait() -> None:
            answers.extend(await self.producer.send(*frames))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            yield answers

    async def during(
        self, change: Callable[[], Awaitable[Any]], *offsets: tuple[int, int], **fields: Any
    ) -> list[PartitionData]:
        """What it is told, when this happened while it waited."""
        frame = request(self.scene, offsets or [(0, END)], max_wait_ms=WAIT_MS, **fields)
        async with self.asking(frame) as answers:
            await change()
        (answer,) = answers
        return told(answer, fields.get("version", NEWEST))


async def filled(scene: Scene, partitions: int = 1) -> Waiting:
    await scene.create("plain", partitions)
    await scene.create("last")
    for index in range(partitions):
        await scene.produce_blob("plain", batch(count=END), index)
    return Waiting(scene)


def base_offsets(data: PartitionData) -> list[int]:
    return [header.base_offset for header, _ in iter_batches(bytes(data.records))]


def nobody_waits(scene: Scene) -> bool:
    """Neither for partitions nor for the time, but for the alarms of the broker itself."""
    partitions = [partition for key, partition in scene.broker.replicas.partitions.items() if key[0] == "plain"]
    return not any(partition._waiters for partition in partitions) and not scene.broker.alarms.pending


async def produced(scene: Scene, index: int = 0, **options: Any) -> None:
    await scene.produce_blob("plain", batch(**options), index)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", range(9, NEWEST + 1))
async def test_who_waits_is_told_of_the_next_batch(
    version: int, isolation_level: int, known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known(version=version, isolation_level=isolation_level)
        began = trio.current_time()
        (data,) = await waiting.during(lambda: produced(scene), version=version, isolation_level=isolation_level)
        assert (data.partition_index, data.error_code, base_offsets(data)) == (0, 0, [END])
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (END + 1, END + 1, 0)
        assert data.aborted_transactions == ([] if isolation_level else None)
        assert (trio.current_time(), known[-1], handled) == (began, True, [])
        assert nobody_waits(scene)


async def test_of_several_partitions_all_are_told(known: list[bool], handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene, 4)
        await waiting.made_known()

        async def change() -> None:
            await produced(scene, 3)  # is not asked for
            await produced(scene, 1)

        found = await waiting.during(change, (2, END), (1, END), (0, END))
        assert [(data.partition_index, base_offsets(data)) for data in found] == [(2, []), (1, [END]), (0, [])]
        assert [data.high_watermark for data in found] == [END, END + 1, END]
        assert (known[-1], handled) == (True, [])
        assert nobody_waits(scene)


async def test_when_the_time_is_up_there_is_nothing_to_tell(
    known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()
        began = trio.current_time()
        (data,) = await waiting.during(trio.lowlevel.checkpoint)
        assert (data.error_code, data.records, data.high_watermark) == (0, b"", END)
        assert trio.current_time() - began == WAIT_MS / 1000
        assert (known[-1], handled) == (True, [0])
        assert nobody_waits(scene)


@pytest.mark.parametrize("more", [True, False])
async def test_who_wants_more_waits_for_the_rest_of_the_time(more: bool, handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        least = len(batch()) + 1
        await waiting.made_known(min_bytes=least)
        began = trio.current_time()

        async def change() -> None:
            await trio.sleep(10)
            await produced(scene)
            await trio.sleep(10)
            if more:
                await produced(scene)

        (data,) = await waiting.during(change, min_bytes=least)
        assert base_offsets(data) == [END, END + 1][: 1 + more]
        assert trio.current_time() - began == (20 if more else WAIT_MS / 1000)
        assert handled == [WAIT_MS - 10_000]
        assert nobody_waits(scene)


async def marker(scene: Scene, *, committed: bool) -> None:
    topics = [WritableTxnMarkerTopic(name="plain", partition_indexes=[0])]
    ends = WritableTxnMarker(producer_id=5, producer_epoch=0, transaction_result=committed, topics=topics)
    await scene.call(WriteTxnMarkersRequest(markers=[ends]))


@pytest.mark.parametrize("committed", [True, False])
async def test_who_reads_committed_waits_for_the_end_of_the_transaction(
    committed: bool, known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known(isolation_level=1)
        began = trio.current_time()

        async def change() -> None:
            partition = scene.broker.replicas.partition("plain", 0)
            guard = partition.begin_verification(5, 0, 0, supports_epoch_bump=False)
            records = batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
            await partition.append(records, 1, verification=guard)
            await trio.sleep(1)
            await marker(scene, committed=committed)

        (data,) = await waiting.during(change, isolation_level=1)
        assert base_offsets(data) == [END, END + 1]
        assert data.aborted_transactions == ([] if committed else [AbortedTransaction(producer_id=5, first_offset=END)])
        assert (trio.current_time() - began, known[-1]) == (1, True)
        assert handled == ([] if committed else [WAIT_MS - 1000])


@pytest.mark.parametrize("version", [12, NEWEST])
async def test_who_waits_for_a_topic_that_is_deleted_is_told_so(
    version: int, handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known(version=version)
        deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="plain")], timeout_ms=1000)
        (data,) = await waiting.during(lambda: scene.call(deletion), version=version)
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert handled == [WAIT_MS]
        assert nobody_waits(scene)


async def test_who_waits_for_a_leader_that_leads_no_more_is_told_so(handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene, 2)
        await waiting.made_known()
        found = await waiting.during(lambda: scene.place("plain", 2, 1), (1, END), (0, END))
        assert [data.error_code for data in found] == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert found[1].current_leader.leader_id == 2
        assert handled == [WAIT_MS]
        assert nobody_waits(scene)


async def test_who_waits_for_an_older_epoch_is_fenced(handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()
        told_epoch = {"current_leader_epoch": scene.broker.replicas.partition("plain", 0).leader_epoch}
        (data,) = await waiting.during(lambda: scene.place("plain", 1), partition=told_epoch)
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert handled == [WAIT_MS]
        assert nobody_waits(scene)


async def test_who_waits_for_a_log_that_is_lost_is_told_so(handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()

        async def change() -> None:
            scene.broker.replicas.partition("plain", 0).lose_log()

        (data,) = await waiting.during(change)
        assert (data.error_code, handled) == (ErrorCode.KAFKA_STORAGE_ERROR, [WAIT_MS])
        assert nobody_waits(scene)


async def test_who_waits_is_told_what_the_followers_have(known: list[bool], handled: list[int], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await scene.place("plain", 1, 2)
        await trio.testing.wait_all_tasks_blocked()
        await waiting.made_known()
        partition = scene.broker.replicas.partition("plain", 0)
        await partition.fetch_for_follower(2, END, 1)
        assert partition.local_log().high_watermark == END
        began = trio.current_time()

        async def change() -> None:
            await partition.append(batch(), 1)
            await trio.sleep(1)
            await partition.fetch_for_follower(2, END + 1, 1)

        (data,) = await waiting.during(change)
        assert (base_offsets(data), data.high_watermark) == ([END], END + 1)
        assert (trio.current_time() - began, known[-1], handled) == (1, True, [])
        assert nobody_waits(scene)


async def test_that_partition_alone_is_looked_at_which_changed(
    handled: list[int], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """However many there are, and however often that is nothing to be told of."""
    looked_at: list[int] = []
    is_read_up = Partition.is_read_up

    def noting(partition: Partition, *asked: Any) -> bool:
        looked_at.append(partition.index)
        return is_read_up(partition, *asked)

    monkeypatch.setattr(Partition, "is_read_up", noting)
    async with running() as scene:
        waiting = await filled(scene, 20)
        await waiting.made_known(isolation_level=1)

        async def change() -> None:
            looked_at.clear()
            partition = scene.broker.replicas.partition("plain", 7)
            guard = partition.begin_verification(5, 0, 0, supports_epoch_bump=False)
            records = batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
            await partition.append(records, 1, verification=guard)
            await trio.sleep(1)
            assert looked_at == [7]
            await produced(scene, 3)

        offsets = [(index, END) for index in range(20)]
        found = await waiting.during(change, *offsets, isolation_level=1)
        assert [base_offsets(data) for data in found] == [[END] if index == 3 else [] for index in range(20)]
        assert (looked_at, handled) == ([7, 3], [])


async def test_what_changes_nothing_for_who_waits_is_not_told(
    known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()
        partitions = [DeleteRecordsPartition(partition_index=0, offset=END)]
        topics = [DeleteRecordsTopic(name="plain", partitions=partitions)]
        began = trio.current_time()

        async def change() -> None:
            await scene.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000))
            await trio.sleep(1)
            await produced(scene)

        (data,) = await waiting.during(change)
        assert (base_offsets(data), data.log_start_offset) == ([END], END)
        assert (trio.current_time() - began, known[-1], handled) == (1, True, [])


async def test_what_is_not_in_memory_then_is_read_by_the_task(
    handled: list[int], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()

        async def change() -> None:
            monkeypatch.setattr(MemoryFile, "read_resident", lambda file, size, position: None)
            monkeypatch.setattr(MemoryFile, "is_loading_due", lambda file, position, size: True)
            await produced(scene, count=3)

        (data,) = await waiting.during(change)
        assert (base_offsets(data), handled) == ([END], [WAIT_MS])


async def test_what_fails_while_it_waits_is_told(monkeypatch: pytest.MonkeyPatch, autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known(version=12)

        async def change() -> None:
            def fail(*arguments: Any) -> None:
                raise RuntimeError("told by a test")

            monkeypatch.setattr(FetchWithoutSession, "told", fail)
            await produced(scene)

        (data,) = await waiting.during(change, version=12)
        assert (data.partition_index, data.error_code) == (0, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert nobody_waits(scene)


async def test_what_comes_behind_it_waits_too(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()
        frames = [request(scene, [(0, offset)], 7 + offset, max_wait_ms=WAIT_MS) for offset in (END, 0, END)]
        async with waiting.asking(*frames) as answers:
            await produced(scene)
        assert known[-3:] == [True, True, True]
        assert [answer[3] for answer in answers] == [7 + END, 7, 7 + END]
        assert [base_offsets(told(answer)[0]) for answer in answers] == [[END], [0, END], [END]]


@pytest.mark.parametrize("handed_over", [False, True])
async def test_who_waits_for_longer_than_he_may_be_idle_is_forgotten(
    handed_over: bool, known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running({"connections.max.idle.ms": "1000"}) as scene:
        waiting = await filled(scene)
        least = len(batch()) + 1
        await waiting.made_known(min_bytes=least)
        frame = request(scene, [(0, END)], max_wait_ms=WAIT_MS, min_bytes=least)
        async with waiting.asking(frame) as answers:
            assert known[-1]
            if handed_over:
                await produced(scene)
            assert not nobody_waits(scene)
        assert answers == [b"the end"]
        assert trio.current_time() < WAIT_MS / 1000
        await trio.testing.wait_all_tasks_blocked()
        assert nobody_waits(scene)
        assert len(handled) == handed_over


@pytest.mark.parametrize("handed_over", [False, True])
async def test_a_broker_that_stops_answers_who_waits(
    handed_over: bool, known: list[bool], handled: list[int], autojump_clock
) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        least = len(batch()) + 1
        await waiting.made_known(min_bytes=least)
        began = trio.current_time()
        frame = request(scene, [(0, END)], max_wait_ms=WAIT_MS, min_bytes=least)
        async with waiting.asking(frame) as answers:
            assert known[-1]
            if handed_over:
                await produced(scene)
                await trio.testing.wait_all_tasks_blocked()
            scene.broker.stop(100.0)
        (data,) = told(answers[0])
        assert (data.error_code, base_offsets(data)) == (0, [END] if handed_over else [])
        assert (trio.current_time(), handled) == (began, [WAIT_MS if handed_over else 0])


async def test_what_came_with_it_is_not_kept(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        waiting = await filled(scene)
        await waiting.made_known()
        kept: list[WaitingFetch] = []
        makes = WaitingFetch.__init__

        def noting(fetch: WaitingFetch, *arguments: Any) -> None:
            kept.append(fetch)
            makes(fetch, *arguments)

        large = request_to_produce(scene, batch(size=1000))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(WaitingFetch, "__init__", noting)
            frame = request(scene, [(0, END + 1)], max_wait_ms=WAIT_MS)
            with trio.move_on_after(1):
                await waiting.producer.send(large, frame)
        assert known[-1]
        assert [waits._frame for waits in kept] == [frame]
        assert isinstance(kept[0]._frame, bytes)
