"""A Fetch request without a session that is known from an earlier one is answered as it would be without that."""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack
from typing import Any

import pytest
import trio.testing

from kwire.ports.memory_files import MemoryFile
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import AbortedTransaction
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.protocol.records.header import iter_batches
from kwire.security.authorizer import Operation
from tests.broker.foreseen import note_known
from tests.broker.raw_fetch import NEWEST, request, told
from tests.broker.raw_produce import Producer, batch
from tests.broker.scene import Only, Scene, running

pytestmark = pytest.mark.plain  # who answers is found out by a change to `Templates`

MANY = 9


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each Fetch that may have been known: whether a template answered it."""
    return note_known(monkeypatch, ApiKey.FETCH)


async def filled(scene: Scene, sizes: Sequence[int] = (10,), batches: int = MANY) -> None:
    """A topic with a partition for each size, each with batches of three records of that size."""
    await scene.create("plain", len(sizes))
    await scene.create("last")
    for index, size in enumerate(sizes):
        for _ in range(batches):
            await scene.produce_blob("plain", batch(count=3, size=size), index)


def base_offsets(records: Any) -> list[int]:
    return [header.base_offset for header, _ in iter_batches(bytes(records))]


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", range(9, NEWEST + 1))
async def test_a_request_that_comes_again_with_other_offsets_is_known(
    version: int, isolation_level: int, known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene, [10, 20_000, 9_000])
        producer = Producer(scene)
        for number, indexes in enumerate([(1,), (0,), (1, 2), (2, 0, 1), (1,), (0, 2)]):
            asked = [(index, 3 * (number + index)) for index in indexes]
            frame = request(scene, asked, number, version=version, isolation_level=isolation_level)
            (answer,) = await producer.send(frame)
            assert unpack(">i", answer[:4]) == (number,)
            for data, (index, offset) in zip(told(answer, version), asked, strict=True):
                assert (data.partition_index, data.error_code, data.high_watermark) == (index, 0, 3 * MANY)
                assert (data.last_stable_offset, data.log_start_offset) == (3 * MANY, 0)
                assert data.aborted_transactions == ([] if isolation_level else None)
                assert base_offsets(data.records) == list(range(offset, 3 * MANY, 3))
    assert known[-3:] == [True, True, True]


@pytest.mark.parametrize("version", [9, 11, 12, 13])
async def test_names_of_any_length_and_consumers_in_any_rack_are_known(
    version: int, known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("last")
        for size in (1, 126, 127, 249):
            topic = "t" * size
            await scene.create(topic)
            await scene.produce_blob(topic, batch())
            racks = ["", "r", "\u00e9" * 30] if version >= 11 else [""]
            for client_id in (None, "", "\u00e9" * 10):
                producer = Producer(scene)
                for rack in (*[""] * 4, *racks):
                    frame = request(scene, [(0, 0)], topic=topic, version=version, client_id=client_id, rack_id=rack)
                    (answer,) = await producer.send(frame)
                    assert base_offsets(told(answer, version)[0].records) == [0]
                assert known[-len(racks) :] == [True] * len(racks)


@pytest.mark.parametrize("version", [11, 12, NEWEST])
@pytest.mark.parametrize("size", [20, 22_000])
async def test_a_rack_that_is_no_text(version: int, size: int, known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        for client_id in ("c", "c" * 22_000):
            frame = request(scene, [(0, 0)], version=version, client_id=client_id, rack_id="r" * size)
            frame = frame.replace(b"r" * size, b"\xff" * size)
            for _ in range(4):
                (answer,) = await producer.send(frame)
                assert told(answer, version)[0].error_code == 0
    assert True not in known


@pytest.mark.parametrize("version", [9, 12])
async def test_of_more_partitions_than_are_read_in_one_go(version: int, known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene, [10] * 127, 1)
        producer = Producer(scene)
        for most, is_known in [(1, False)] * 3 + [(1, True), (126, True), (127, False), (1, True)]:
            frame = request(scene, [(index, 0) for index in range(most)], version=version)
            (answer,) = await producer.send(frame)
            assert [data.error_code for data in told(answer, version)] == [0] * most
            assert (known or [False])[-1] is is_known


@pytest.mark.parametrize("version", [4, 8])
async def test_of_old_versions_none_is_known(version: int, known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        for _ in range(4):
            (answer,) = await producer.send(request(scene, [(0, 3)], version=version))
            assert base_offsets(told(answer, version)[0].records)[0] == 3
    assert True not in known


async def asked(producer: Producer, *offsets: tuple[int, int], **fields: Any) -> list[tuple[int, list[int]]]:
    """Of each partition its error code, and the base offsets of the batches that came."""
    (answer,) = await producer.send(request(producer.scene, offsets, **fields))
    return [(data.error_code, base_offsets(data.records)) for data in told(answer)]


async def made_known(producer: Producer, known: list[bool], **fields: Any) -> None:
    for _ in range(4):  # the first one is the task's, the second one and the third are learned from
        assert (await asked(producer, (0, 0), **fields))[0][0] == 0
    assert known[-1]


async def test_all_partitions_together_get_no_more_than_was_asked_for(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene, [1000, 1000, 1000], 3)
        producer = Producer(scene)
        await made_known(producer, known, max_bytes=8000)
        size = len(batch(count=3, size=1000))
        for most, came in ((3 * size, [3, 0, 0]), (4 * size, [3, 1, 0]), (7 * size, [3, 3, 1])):
            await made_known(producer, known, max_bytes=most)
            found = await asked(producer, (0, 0), (1, 0), (2, 0), max_bytes=most)
            assert [len(offsets) for _, offsets in found] == came
            assert known[-1]


async def test_a_first_batch_that_is_larger_than_all_that_was_asked_for_comes(
    known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene, [50_000, 50_000], 2)
        producer = Producer(scene)
        await made_known(producer, known, max_bytes=100)
        assert await asked(producer, (1, 3), (0, 0), max_bytes=100) == [(0, [3]), (0, [])]
        assert known[-1]


async def test_who_finds_too_little_waits(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        await made_known(producer, known, min_bytes=500)
        assert await asked(producer, (0, 3 * MANY), min_bytes=500) == [(0, [])]
        assert await asked(producer, (0, 3 * MANY - 3), min_bytes=500) == [(0, [3 * MANY - 3])]
        assert known[-2:] == [True, False]  # who found nothing at all waits as he is known


async def test_no_more_is_waited_for_than_may_be_sent(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene, [1000])
        producer = Producer(scene)
        limits = {"max_bytes": 4000, "min_bytes": 5000, "max_wait_ms": 60_000}
        await made_known(producer, known, **limits)
        assert await asked(producer, (0, 3), **limits) == [(0, [3])]
        assert known[-1]
        nothing = {"max_bytes": 0, "max_wait_ms": 60_000}
        await made_known(producer, known, **nothing)
        assert await asked(producer, (0, 3 * MANY), **nothing) == [(0, [])]
        assert trio.current_time() == 0


async def test_the_rest_of_an_older_segment_is_not_waited_for(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        limits = {"min_bytes": 500, "max_wait_ms": 60_000}
        await made_known(producer, known, **limits)
        scene.log("plain").roll()
        assert await asked(producer, (0, 3 * MANY - 3), **limits) == [(0, [3 * MANY - 3])]
        assert trio.current_time() == 0


@pytest.mark.parametrize(
    ("offsets", "fields", "code"),
    [
        ([(0, 1000)], {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ([(0, 0), (0, -1)], {}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ([(5, 0)], {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([(0, 0)], {"partition": {"current_leader_epoch": 1}}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ([(0, 0)], {"partition": {"partition_max_bytes": -1}}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ([(0, 9)], {"partition": {"last_fetched_epoch": 0}}, 0),
        ([(0, 0)], {"partition": {"high_watermark": 3}}, 0),
    ],
)
async def test_what_a_template_leaves_to_others(
    offsets: list[tuple[int, int]], fields: dict[str, Any], code: int, known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        await made_known(producer, known)
        assert (await asked(producer, *offsets, **fields))[-1][0] == code
        assert not known[-1]
        await made_known(producer, known)


async def test_who_may_not_read_is_refused_though_others_may(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        await made_known(Producer(scene), known)
        scene.broker.authorizer = Only(Operation.WRITE)
        producer = Producer(scene)
        for _ in range(4):
            assert await asked(producer, (0, 0)) == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])]


async def test_what_is_not_in_memory_is_left_to_the_task(
    known: list[bool], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene, [20_000])
        producer = Producer(scene)
        await made_known(producer, known)
        monkeypatch.setattr(MemoryFile, "is_loading_due", lambda file, position, size: True)
        assert await asked(producer, (0, 3)) == [(0, list(range(3, 3 * MANY, 3)))]
        assert not known[-1]


async def test_who_reads_committed_is_told_of_aborted_transactions(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene, batches=1)
        partition = scene.broker.replicas.partition("plain", 0)
        guard = partition.begin_verification(5, 0, 0, supports_epoch_bump=False)
        records = batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
        await partition.append(records, 1, verification=guard)
        producer = Producer(scene)
        await made_known(producer, known, isolation_level=1)
        assert await asked(producer, (0, 0), isolation_level=1) == [(0, [0])]
        topics = [WritableTxnMarkerTopic(name="plain", partition_indexes=[0])]
        marker = WritableTxnMarker(producer_id=5, producer_epoch=0, transaction_result=False, topics=topics)
        await scene.call(WriteTxnMarkersRequest(markers=[marker]))
        (answer,) = await producer.send(request(scene, [(0, 0)], isolation_level=1))
        (data,) = told(answer)
        assert base_offsets(data.records) == [0, 3, 4]
        assert data.aborted_transactions == [AbortedTransaction(producer_id=5, first_offset=3)]
        assert not known[-1]


async def test_who_asks_a_broker_that_leads_no_more_is_told_so(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        await made_known(producer, known)
        await scene.place("plain", 2, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert await asked(producer, (0, 0)) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, [])]


async def test_a_topic_made_anew_is_not_taken_for_the_old_one(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        await made_known(producer, known)
        frame = request(scene, [(0, 0)])
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="plain")], timeout_ms=1000))
        await scene.create("plain")
        (answer,) = await producer.send(frame)
        assert told(answer)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("session", [{"session_epoch": 0}, {"session_id": 7, "session_epoch": -1}])
async def test_requests_of_sessions_do_not_become_known(
    session: dict[str, int], known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene)
        producer = Producer(scene)
        for _ in range(4):
            assert (await asked(producer, (0, 0), **session))[0][0] == 0
    assert True not in known
