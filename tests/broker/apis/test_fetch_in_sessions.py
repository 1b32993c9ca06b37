"""Fetch in sessions (KIP-227): what an incremental answer tells, and how a session ends."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.fetch_sessions import EVICTION_AFTER_MS
from kwire.cluster.partition import Partition
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchResponse
from tests.broker.apis.fetches import Asked, at, fetch, offsets, partitions, request
from tests.broker.scene import Scene, running

NEW, LAST = 0, -1


class Session:
    """A client's session."""

    def __init__(self, scene: Scene, version: int = 18) -> None:
        self.scene = scene
        self.version = version
        self.id = 0
        self.epoch = NEW

    async def fetch(self, *asked: Asked, **options: Any) -> FetchResponse:
        """The next fetch; the first one opens the session."""
        said = {"version": self.version, "session_id": self.id, "session_epoch": self.epoch}
        response = await fetch(self.scene, *asked, **(said | options))
        if not response.error_code:
            self.id = response.session_id
            self.epoch += 1
        return response

    async def told(self, *asked: Asked, **options: Any) -> list[tuple[int, list[int]]]:
        """(partition, base offsets of its batches) of what the next fetch is told."""
        response = await self.fetch(*asked, **options)
        assert response.error_code == 0
        return [(data.partition_index, offsets(data)) for data in partitions(response)]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
async def test_incremental_answers_tell_what_is_new(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 3)
        await scene.produce("t", b"a")
        session = Session(scene, version)
        assert await session.told(at("t", 0, 0), at("t", 0, 1), at("t", 0, 2)) == [(0, [0]), (1, []), (2, [])]
        assert session.id > 0
        assert await session.told() == [(0, [0])]  # the offset asked for is the same
        assert await session.told(at("t", 1, 0)) == []
        await scene.produce("t", b"b", partition=1)
        assert await session.told() == [(1, [0])]
        assert await session.told(at("t", 1, 1)) == []
        asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
        await scene.call(DeleteRecordsRequest(topics=[asked], timeout_ms=1000))
        assert await session.told() == [(0, [])]  # its log starts elsewhere
        await scene.produce("t", b"c", partition=2)
        assert await session.told(forgotten=[("t", 2)]) == []


@pytest.mark.parametrize("version", [7, 18])
async def test_an_error_is_told_each_time_and_so_is_its_end(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)

        async def codes(*asked: Asked) -> list[tuple[int, int]]:
            return [(data.partition_index, data.error_code) for data in partitions(await session.fetch(*asked))]

        session = Session(scene, version)
        out_of_range = (0, ErrorCode.OFFSET_OUT_OF_RANGE)
        assert await codes(at("t", 9, 0), at("t", 0, 1)) == [out_of_range, (1, 0)]
        assert await codes() == [out_of_range]
        assert await codes(at("t", 0, 0)) == [(0, 0)]
        assert await codes() == []


@pytest.mark.parametrize("version", [7, 18])
async def test_epochs_and_ids_that_do_not_fit(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        session = Session(scene, version)
        await session.fetch(at("t"))

        async def refused(session_id: int, epoch: int) -> FetchResponse:
            response = await session.fetch(at("t"), session_id=session_id, session_epoch=epoch)
            assert (response.responses, response.session_id) == ([], 0)
            return response

        wrong = ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert [(await refused(session.id, epoch)).error_code for epoch in (2, 5, -2)] == [wrong] * 3
        unknown = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert [(await refused(other, 1)).error_code for other in (0, -5, session.id + 1)] == [unknown] * 3
        assert await session.told() == []  # it goes on all the same


@pytest.mark.parametrize("epoch", [NEW, LAST])
async def test_a_full_fetch_ends_the_session_that_it_names(epoch: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        session = Session(scene)
        await session.fetch(at("t"))
        ended = session.id
        response = await session.fetch(at("t"), session_epoch=epoch)
        assert len(partitions(response)) == 1
        assert response.session_id != ended
        assert (response.session_id > 0) == (epoch == NEW)
        after = await fetch(scene, session_id=ended, session_epoch=1)
        assert after.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_session_ends_with_its_last_partition(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        session = Session(scene)
        await session.fetch(at("t"))
        ended = session.id
        response = await session.fetch(forgotten=[("t", 0)])
        assert (response.error_code, response.session_id, response.responses) == (0, 0, [])
        after = await fetch(scene, session_id=ended, session_epoch=2)
        assert after.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_names_and_ids_do_not_mix(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        for before, after in ((12, 13), (13, 12)):
            session = Session(scene, before)
            await session.fetch(at("t"))
            response = await session.fetch(version=after)
            assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, [])


async def test_without_room_there_is_no_session(autojump_clock) -> None:
    async with running({"max.incremental.fetch.session.cache.slots": "1"}) as scene:
        await scene.create("t")
        first, second = Session(scene), Session(scene)
        await first.fetch(at("t"))
        response = await second.fetch(at("t"))
        assert (response.error_code, response.session_id, len(partitions(response))) == (0, 0, 1)
        assert await first.told() == []


async def test_a_session_long_unused_makes_room(autojump_clock) -> None:
    async with running({"max.incremental.fetch.session.cache.slots": "1"}) as scene:
        await scene.create("t")
        old, new = Session(scene), Session(scene)
        await old.fetch(at("t"))
        await trio.sleep(EVICTION_AFTER_MS / 1000 + 1)
        assert (await new.fetch(at("t"))).session_id > 0
        assert (await old.fetch()).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_whoever_sent_records_is_served_last(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 3)
        for partition in range(3):
            await scene.produce("t", b"v" * 100, partition=partition)
        session = Session(scene)
        await session.fetch(*(at("t", 0, partition) for partition in range(3)), max_bytes=1)
        turns = [await session.told(max_bytes=1) for _ in range(4)]
        assert turns == [[(0, [0])], [(1, [0])], [(2, [0])], [(0, [0])]]


@pytest.mark.parametrize("version", [12, 18])
async def test_a_topic_deleted_and_made_anew(version: int, autojump_clock) -> None:
    """A session keeps to the name that an id had."""
    async with running() as scene:
        before = await scene.create("t")
        await scene.produce("t", b"old")
        session = Session(scene, version)
        await session.fetch(at("t"))
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))

        async def codes() -> list[int]:
            return [data.error_code for data in partitions(await session.fetch())]

        assert await codes() == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await scene.create("t") != before
        await scene.produce("t", b"new")
        assert await codes() == [ErrorCode.INCONSISTENT_TOPIC_ID if version >= 13 else 0]


async def test_an_empty_session_is_not_waited_for(autojump_clock) -> None:
    async with running() as scene:
        response = await fetch(scene, session_epoch=NEW, max_wait_ms=60_000)
        assert (response.error_code, response.responses) == (0, [])
        assert trio.current_time() == 0


async def test_what_there_is_no_room_for_counts_too(autojump_clock) -> None:
    """As outside a session: what is there is enough for `min_bytes`, though `max_bytes` lets less of it through."""
    async with running() as scene:
        await scene.create("t", 2)
        for partition in (0, 1):
            await scene.produce("t", b"x" * 600, partition=partition)
        limits = {"max_bytes": 1000, "min_bytes": 1000, "max_wait_ms": 5000}
        assert len(await Session(scene).told(at("t", 0, 0), at("t", 0, 1), **limits)) == 2
        assert trio.current_time() == 0


class Twice:
    """One session, continued on a second connection while a fetch waits on the first."""

    def __init__(self, scene: Scene, session: Session) -> None:
        self.scene = scene
        self.session = session
        self.told: dict[int, list[tuple[int, list[int]]]] = {}
        """By epoch."""
        self.ended: dict[int, float] = {}

    async def fetch(self, epoch: int, **options: Any) -> None:
        """On a connection of its own."""
        connection = await self.scene.another_connection()
        asked = request(self.scene, session_id=self.session.id, session_epoch=epoch, **options)
        response = await connection.call(asked, 18)
        self.told[epoch] = [(data.partition_index, offsets(data)) for data in partitions(response)]
        self.ended[epoch] = trio.current_time()
        connection.close()


async def test_a_fetch_is_woken_although_an_older_one_of_the_session_ended(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        session = Session(scene)
        await session.fetch(at("t"))
        twice = Twice(scene, session)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: twice.fetch(1, max_wait_ms=1_000))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(lambda: twice.fetch(2, max_wait_ms=10_000))
            await trio.sleep(2)
            await scene.produce("t", b"x")
        assert twice.told[2] == [(0, [0])]
        assert twice.ended[2] == 2


async def test_what_an_older_fetch_of_the_session_found_is_told_by_the_next(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        session = Session(scene)
        await session.fetch(at("t", 0, 0), at("t", 0, 1))
        assert await session.told() == []
        twice = Twice(scene, session)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: twice.fetch(2, max_wait_ms=5_000, min_bytes=10_000))
            await trio.testing.wait_all_tasks_blocked()
            await twice.fetch(3)
            await scene.produce("t", b"x")
            await trio.testing.wait_all_tasks_blocked()
            await twice.fetch(4)
        assert twice.told[4] == [(0, [0])]


async def test_a_partition_that_is_forgotten_and_named_again_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        for value in (b"a", b"b", b"c"):
            await scene.produce("t", value, partition=1)
        session = Session(scene)
        await session.fetch(at("t", 0, 0), at("t", 3, 1))
        assert await session.told() == []
        cold = trio.Event()
        read = Partition.fetch

        async def slowly(self: Partition, *arguments: Any, **options: Any) -> Any:
            if self.index == 0:
                await cold.wait()
            return await read(self, *arguments, **options)

        twice = Twice(scene, session)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: twice.fetch(2, max_wait_ms=5_000, min_bytes=10_000))
            await trio.testing.wait_all_tasks_blocked()
            monkeypatch.setattr(Partition, "fetch", slowly)
            for index in (0, 1):
                scene.broker.replicas.partition("t", index).changed()
            await trio.testing.wait_all_tasks_blocked()
            monkeypatch.undo()
            await twice.fetch(3, forgotten=[("t", 1)])
            await scene.produce("t", b"d", partition=1)
            connection = await scene.another_connection()
            asked = request(scene, at("t", 4, 1), session_id=session.id, session_epoch=4)
            assert not (await connection.call(asked, 18)).error_code
            connection.close()
            cold.set()
        for epoch in (5, 6):
            await twice.fetch(epoch)
        await scene.produce("t", b"e", partition=1)
        await twice.fetch(7)
        assert twice.told[7] == [(1, [4])]
