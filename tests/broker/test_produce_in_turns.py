"""A Produce that is known from an earlier one and takes long gives way amid its batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest
import trio
import trio.testing

from kwire.broker import produce_to_several, producing
from kwire.broker.apis import produce as produce_api
from kwire.ports import at_once, turns
from kwire.ports.memory_transport import MemoryStream
from kwire.ports.stepping import HERE
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.records.compression import Compression
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.record_walk import PendingWalk
from tests.broker.apis import transactions
from tests.broker.raw_produce import Producer, batch, request
from tests.broker.scene import Scene, running
from tests.broker.test_produce_templates import offsets

COUNT = 64
"""Partitions; sixteen small batches are appended without a look at the time."""


class Meanwhile(Protocol):
    def __call__(self, act: Callable[[], object], until: Callable[[], bool] = lambda: True) -> None:
        """Has something done when a request gives way next, and it go on when that is so."""


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Each gives way whenever it looks at the time: in a task, or by having its stream resume it later."""
    waiting: list[tuple[Callable[[], object], Callable[[], bool]]] = []

    async def do_next() -> None:
        if waiting:
            act, until = waiting.pop()
            act()
            while not until():
                await trio.lowlevel.checkpoint()

    async def give_way() -> None:
        if not HERE.stepping:
            await do_next()
        await at_once.give_way()

    def resume_later(stream: MemoryStream) -> None:
        async def resume() -> None:
            await do_next()
            stream.resume()

        trio.lowlevel.spawn_system_task(resume)

    def meanwhile(act: Callable[[], object], until: Callable[[], bool] = lambda: True) -> None:
        waiting.append((act, until))

    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(turns, "give_way", give_way)
    monkeypatch.setattr(MemoryStream, "resume_later", resume_later)
    return meanwhile


@pytest.fixture
def by_handler(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each request that the handler was given, how many partitions it was for."""
    found: list[int] = []
    produce = producing.produce

    async def counted(broker: Any, context: Any, asked: Any, *done: Any) -> object:
        found.append(len(asked.topic_data[0].partition_data))
        return await produce(broker, context, asked, *done)

    monkeypatch.setattr(produce_to_several, "produce", counted)
    monkeypatch.setattr(produce_api, "handle", counted)
    return found


def frame(scene: Scene, *others: tuple[int, bytes], correlation_id: int = 1, **asked: Any) -> bytes:
    """For all partitions; `others`: batches for some of them."""
    batches = {index: batch() for index in range(COUNT)} | dict(others)
    first = batches.pop(0)
    return request(scene, first, correlation_id, more=[*batches.items()], **asked)


async def warm(scene: Scene, **asked: Any) -> Producer:
    """Whose request is known."""
    await scene.create("plain", COUNT)
    await scene.create("last")
    producer = Producer(scene)
    for _ in range(3):
        assert len(await producer.send(frame(scene, **asked))) == (1 if asked.get("acks", 1) else 0)
    return producer


def ends(scene: Scene) -> list[int]:
    return [scene.log("plain", index).log_end_offset for index in range(COUNT)]


ALL_TAKEN = [(index, 0, 3) for index in range(COUNT)]


@pytest.mark.parametrize("acks", [1, -1])
async def test_others_are_answered_amid_it(
    acks: int, meanwhile: Meanwhile, by_handler: list[int], autojump_clock
) -> None:
    async with running() as scene:
        producer, other = await warm(scene, acks=acks), Producer(scene)
        del by_handler[:]
        seen: list[list[int]] = []

        async def ask() -> None:
            await other.send(request(scene, batch(), topic="last"))
            seen.append(ends(scene))

        async with trio.open_nursery() as nursery:
            await other.send(request(scene, batch(), topic="last"))
            meanwhile(lambda: nursery.start_soon(ask), lambda: bool(seen))
            (answer,) = await producer.send(frame(scene, acks=acks))
        assert offsets(answer) == ALL_TAKEN
        assert ends(scene) == [4] * COUNT
        assert set(seen[0]) == {3, 4}
        assert COUNT not in by_handler


async def test_one_that_is_not_known_gives_way_after_each_of_few_batches(meanwhile: Meanwhile, autojump_clock) -> None:
    """They may be large."""
    async with running() as scene:
        await scene.create("plain", 3)
        await scene.create("last")
        seen: list[list[int]] = []

        def look() -> None:
            seen.append([scene.log("plain", index).log_end_offset for index in range(3)])

        for _ in range(2):
            meanwhile(look)
        (answer,) = await Producer(scene).send(request(scene, batch(), more=[(1, batch()), (2, batch())]))
        assert [code for _, code, _ in offsets(answer)] == [0, 0, 0]
        assert seen == [[1, 0, 0], [1, 1, 0]]


async def test_what_came_behind_it_waits(meanwhile: Meanwhile, autojump_clock) -> None:
    async with running() as scene:
        producer = await warm(scene)
        first, second = await producer.send(frame(scene), request(scene, batch(), 2))
        assert offsets(first) == ALL_TAKEN
        assert offsets(second) == [(0, 0, 4)]


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_what_can_not_be_appended_at_once_any_more_is_the_handlers(
    acks: int, meanwhile: Meanwhile, by_handler: list[int], autojump_clock
) -> None:
    """And all behind it; so the batches before it are neither appended twice nor forgotten."""
    async with running() as scene:
        producer = await warm(scene, acks=acks)
        del by_handler[:]
        meanwhile(lambda: scene.broker.replicas.partitions.pop(("plain", 40)))
        came = await producer.send(frame(scene, acks=acks))
        if acks:
            expected = [*ALL_TAKEN]
            expected[40] = (40, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            assert offsets(came[0]) == expected
        else:
            assert came == [b"the end"]
        assert by_handler[0] == COUNT - 40
        found = scene.broker.replicas.partitions
        assert [found["plain", index].log.log_end_offset for index in range(COUNT) if index != 40] == [4] * (COUNT - 1)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_topic_that_is_deleted_and_made_anew_amid_it(
    is_known: bool, meanwhile: Meanwhile, by_handler: list[int], autojump_clock
) -> None:
    """What is for the old one, by its id, does not get into the new one."""
    async with running() as scene:
        if is_known:
            producer = await warm(scene)
        else:
            await scene.create("plain", COUNT)
            await scene.create("last")
            producer = Producer(scene)
        asked, made = frame(scene), trio.Event()
        by_handler.clear()

        async def make_anew() -> None:
            await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="plain")], timeout_ms=1000))
            await scene.create("plain", COUNT)
            made.set()

        async with trio.open_nursery() as nursery:
            meanwhile(lambda: nursery.start_soon(make_anew), made.is_set)
            (answer,) = await producer.send(asked)
        told = offsets(answer)
        before = next(index for index, code, _ in told if code)
        assert 0 < before < COUNT
        assert {code for _, code, _ in told[:before]} == {0}
        assert {code for _, code, _ in told[before:]} == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert ends(scene) == [0] * COUNT
        assert (COUNT in by_handler) is not is_known


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_a_batch_that_is_refused_amid_it(acks: int, meanwhile: Meanwhile, autojump_clock) -> None:
    gap = batch(producer_id=5, producer_epoch=0, base_sequence=7)
    async with running() as scene:
        producer = await warm(scene, acks=acks)
        first = [(index, batch(producer_id=5, producer_epoch=0, base_sequence=0)) for index in (10, 50)]
        await producer.send(frame(scene, *first, acks=acks))
        came = await producer.send(frame(scene, (10, gap), (50, gap), acks=acks))
        expected = [(index, 0, 4) for index in range(COUNT)]
        for index in (10, 50):
            expected[index] = (index, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert came == [b"the end"] if not acks else offsets(came[0]) == expected
        assert ends(scene) == [4 if index in (10, 50) else 5 for index in range(COUNT)]


@pytest.mark.plain
async def test_few_records_are_looked_at_without_the_handler(
    by_handler: list[int], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """What is refused, or may take long, is left to it with all behind it: many records, and any that are packed."""
    async with running() as scene:
        await scene.create("compacted", 2, cleanup_policy="compact")
        await scene.create("last")
        producer = Producer(scene)

        async def errors(second: bytes) -> list[int]:
            (answer,) = await producer.send(request(scene, batch(), topic="compacted", more=[(1, second)]))
            return [error for _, error, _ in offsets(answer)]

        for _ in range(6):
            assert await errors(batch()) == [0, 0]
        by_handler.clear()
        assert await errors(batch()) == [0, 0]
        assert by_handler == []
        assert await errors(batch(key=None)) == [0, ErrorCode.INVALID_RECORD]
        assert await errors(batch(compression=Compression.GZIP)) == [0, 0]
        assert by_handler == [1, 1]
        monkeypatch.setattr(PendingWalk, "large", True)
        assert await errors(batch()) == [0, 0]
        assert by_handler == [1, 1, 2]


@pytest.mark.parametrize("index", [0, 40])
async def test_a_batch_of_a_transaction_amid_a_request_of_none_has_all_refused(
    index: int, meanwhile: Meanwhile, autojump_clock
) -> None:
    stray = batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    async with running() as scene:
        producer = await warm(scene)
        (answer,) = await producer.send(frame(scene, (index, stray)))
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert offsets(answer) == [(each, code, -1) for each in range(COUNT)]
        assert ends(scene) == [3] * COUNT


async def in_transaction(scene: Scene) -> tuple[Producer, Callable[[int], list[bytes]]]:
    """A producer whose request in a transaction is known, and the batches for the partitions by sequence."""
    await scene.create("plain", COUNT)
    await scene.create("last")
    of_it = await transactions.begin(scene)
    producer = Producer(scene)

    def batches(sequence: int, epoch: int = of_it.epoch) -> list[bytes]:
        return [batch(transactional=True, producer_id=of_it.id, producer_epoch=epoch, base_sequence=sequence)] * COUNT

    for sequence in range(3):
        (answer,) = await producer.send(asked(scene, batches(sequence)))
        assert {code for _, code, _ in offsets(answer)} == {0}
    return producer, batches


def asked(scene: Scene, batches: list[bytes]) -> bytes:
    return frame(scene, *enumerate(batches), acks=-1, transactional_id="t")


async def test_in_a_transaction(meanwhile: Meanwhile, by_handler: list[int], autojump_clock) -> None:
    async with running() as scene:
        producer, batches = await in_transaction(scene)
        del by_handler[:]
        (answer,) = await producer.send(asked(scene, batches(3)))
        assert offsets(answer) == ALL_TAKEN
        assert COUNT not in by_handler


async def test_batches_of_two_producers_in_a_transaction(meanwhile: Meanwhile, autojump_clock) -> None:
    """As where nothing is known: all are refused, or none."""
    async with running() as scene:
        producer, batches = await in_transaction(scene)
        (answer,) = await producer.send(asked(scene, [*batches(3)[:50], *batches(3, 7)[50:]]))
        codes = {code for _, code, _ in offsets(answer)}
        assert len(codes) == 1
        assert ends(scene) == [3 if codes != {0} else 4] * COUNT


class Revocable:
    """Allows all until transactions are forbidden."""

    forbids = False

    def allows(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return not (self.forbids and resource_type is ResourceType.TRANSACTIONAL_ID)


async def test_who_may_no_more_write_in_the_transaction_amid_it(meanwhile: Meanwhile, autojump_clock) -> None:
    """What was appended before is told, what the handler is given refused."""
    authorizer = Revocable()
    async with running(authorizer=authorizer) as scene:
        producer, batches = await in_transaction(scene)
        meanwhile(lambda: setattr(authorizer, "forbids", True))
        (answer,) = await producer.send(asked(scene, batches(3)))
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        told = offsets(answer)
        done = sum(not code for _, code, _ in told)
        assert 0 < done < COUNT
        assert told == ALL_TAKEN[:done] + [(index, code, -1) for index in range(done, COUNT)]


async def test_who_goes_away_amid_it_has_all_appended(meanwhile: Meanwhile, autojump_clock) -> None:
    """It was all here: with acks 0 nobody would send it again."""
    async with running() as scene:
        producer = await warm(scene, acks=0)

        def leave() -> None:
            stream = producer._stream
            assert stream is not None
            stream.close()

        meanwhile(leave)
        assert await producer.send(frame(scene, acks=0)) == [b"the end"]
        await trio.testing.wait_all_tasks_blocked()
        assert ends(scene) == [4] * COUNT
