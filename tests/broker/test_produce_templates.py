"""A Produce request that is known from an earlier one is answered, and does, what it would have without that."""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack
from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.templates import Templates
from kwire.ports import turns
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.headers import decode_response_header
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
)
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.log import Log
from kwire.storage.record_walk import PendingWalk
from tests.broker.apis import transactions
from tests.broker.foreseen import note_known
from tests.broker.raw_produce import LONG, NEWEST, Producer, batch, request
from tests.broker.scene import Only, Scene, running

pytestmark = pytest.mark.plain  # who answers is found out by a change to `Templates`


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request that may have been known: whether a template answered it."""
    return note_known(monkeypatch, ApiKey.PRODUCE)


def answered(answer: bytes, version: int) -> PartitionProduceResponse:
    _, at = decode_response_header(ApiKey.PRODUCE, version, answer)
    (topic,) = codec.decode(ProduceResponse, version, answer, at).responses
    (partition,) = topic.partition_responses
    return partition


def error(answer: bytes, version: int = NEWEST) -> int:
    return answered(answer, version).error_code


def offset(answer: bytes, version: int = NEWEST) -> int:
    """The base offset of an answer that says that all went well."""
    assert error(answer, version) == 0
    return answered(answer, version).base_offset


@pytest.mark.parametrize("version", range(5, 14))
async def test_a_request_that_comes_again_is_known(version: int, known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        for count in range(6):
            frame = request(scene, batch(size=100 * 20**count % 100_000), count, version=version)
            (answer,) = await producer.send(frame)
            assert offset(answer, version) == count
            assert unpack(">i", answer[:4]) == (count,)
    assert known[-6:] == [True] * 6  # what is sent behind it each time, too


def offsets(answer: bytes, version: int = NEWEST) -> list[tuple[int, int, int]]:
    """(partition, error code, base offset) of each partition, in the order of the answer."""
    _, at = decode_response_header(ApiKey.PRODUCE, version, answer)
    (topic,) = codec.decode(ProduceResponse, version, answer, at).responses
    return [(told.index, told.error_code, told.base_offset) for told in topic.partition_responses]


@pytest.mark.parametrize("version", range(5, 14))
async def test_it_is_known_whichever_partitions_of_the_topic_it_is_for(
    version: int, known: list[bool], autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("plain", 3)
        await scene.create("last")
        producer = Producer(scene)
        ends = [0, 0, 0]
        for count, indexes in enumerate([(0,), (1, 2), (2, 0, 1), (1,), (0, 2), (0, 1, 2), (2, 1)]):
            first, *more = [(index, batch(count=1 + index, size=100 * 20**count % 20_000)) for index in indexes]
            frame = request(scene, first[1], count, version=version, index=first[0], more=more)
            (answer,) = await producer.send(frame)
            assert offsets(answer, version) == [(index, 0, ends[index]) for index in indexes]
            assert unpack(">i", answer[:4]) == (count,)
            for index in indexes:
                ends[index] += 1 + index
        assert [scene.log("plain", index).log_end_offset for index in range(3)] == ends
    assert known[-8:] == [True] * 8  # what is sent behind it each time, too


@pytest.mark.parametrize("several", [False, True])
async def test_what_is_for_a_topic_that_was_made_anew_is_not_written(
    several: bool, known: list[bool], autojump_clock
) -> None:
    """Though the name of the old id is still known, as it is for a moment where both changes come together."""
    async with running() as scene:
        await scene.create("plain", 2)
        await scene.create("last")
        producer = Producer(scene)
        more = [(1, batch())] if several else []
        frame = request(scene, batch(), more=more)
        for _ in range(4):
            await producer.send(frame)
        assert known[-1]
        for index in (0, 1):
            scene.broker.replicas.partitions["plain", index].topic_id = bytes(range(16))
        (answer,) = await producer.send(frame)
        assert {code for _, code, _ in offsets(answer)} == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert scene.log("plain").log_end_offset == 4


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_of_several_partitions_one_refuses_its_batch(acks: int, known: list[bool], autojump_clock) -> None:
    """The others take theirs, before it and behind it; without an answer the connection is closed."""
    async with running() as scene:
        await scene.create("plain", 3)
        await scene.create("last")
        producer = Producer(scene)
        first, gap, second = (batch(producer_id=5, producer_epoch=0, base_sequence=sequence) for sequence in (0, 7, 1))
        for _ in range(4):  # for one of them duplicates
            await producer.send(request(scene, batch(), acks=acks, more=[(1, first), (2, batch())]))
        assert known[-1]
        for records, ends in ((gap, [5, 1, 5]), (second, [6, 2, 6])):
            seen = len(known)
            came = await producer.send(request(scene, batch(), acks=acks, more=[(1, records), (2, batch())]))
            if acks:
                code, offset = (0, 1) if records is second else (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
                assert offsets(came[0]) == [(0, 0, ends[0] - 1), (1, code, offset), (2, 0, ends[2] - 1)]
                assert known[seen]
            else:
                assert came == ([] if records is second else [b"the end"])
            assert [scene.log("plain", index).log_end_offset for index in range(3)] == ends


async def test_a_partition_named_twice_gets_what_is_said_of_it_last(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain", 2)
        await scene.create("last")
        producer = Producer(scene)
        for count in range(4):
            frame = request(scene, batch(count=3), more=[(1, batch()), (0, batch())])
            (answer,) = await producer.send(frame)
            assert offsets(answer) == [(0, 0, count), (1, 0, count)]
    assert known[-2:] == [False, True]


async def test_to_more_partitions_than_are_appended_to_in_one_go(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain", 127)
        await scene.create("last")
        producer = Producer(scene)
        await producer.send(request(scene, batch(), more=[(index, batch()) for index in range(1, 127)]))
        for count in range(4):
            assert await told(producer, scene, batch(), times=1) == [0]
            for most, is_known in ((126, count > 1), (127, False)):
                more = [(index, batch()) for index in range(1, most)]
                (answer,) = await producer.send(request(scene, batch(), more=more))
                assert {code for _, code, _ in offsets(answer)} == {0}
                assert len(offsets(answer)) == most
                assert known[-2] is is_known
        assert [scene.log("plain", index).log_end_offset for index in (0, 1, 126)] == [13, 9, 5]


async def test_large_requests_to_several(known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain", 4)
        await scene.create("last")
        producer = Producer(scene)
        for _ in range(4):
            more = [(index, batch(size=1_000_000)) for index in (1, 2, 3)]
            (answer,) = await producer.send(request(scene, batch(size=1_000_000), more=more))
            assert [code for _, code, _ in offsets(answer)] == [0, 0, 0, 0]
        assert known[-2:] == [True, True]
        assert [scene.log("plain", index).log_end_offset for index in range(4)] == [4] * 4


async def test_what_took_the_handler_long_is_known_next_time(
    known: list[bool], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """It has given way to others meanwhile, in the task of its connection."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    async with running() as scene:
        await scene.create("plain", 20)
        await scene.create("last")
        producer = Producer(scene)
        more = [(index, batch()) for index in range(1, 20)]
        for count in range(4):
            (answer,) = await producer.send(request(scene, batch(), more=more))
            assert offsets(answer) == [(index, 0, count) for index in range(20)]
        assert known[-2:] == [True, True]


@pytest.mark.parametrize("version", [3, 4])
async def test_of_old_versions_none_is_known(version: int, known: list[bool], autojump_clock) -> None:
    """Their answers do not tell where the log starts."""
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        for count in range(6):
            (answer,) = await producer.send(request(scene, batch(), version=version))
            assert offset(answer, version) == count
    assert known[-6:] == [False, True] * 3  # what is sent behind it, of the newest version, is


async def told(producer: Producer, scene: Scene, records: bytes, times: int = 4, **asked: Any) -> list[int]:
    """The error codes of so many requests of a kind, all of which are answered."""
    codes = []
    for _ in range(times):
        (answer,) = await producer.send(request(scene, records, **asked))
        codes.append(error(answer, asked.get("version", NEWEST)))
    return codes


@pytest.mark.parametrize("version", [9, NEWEST])
async def test_who_may_not_write_is_refused_though_others_may(version: int, known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        assert await told(Producer(scene), scene, batch(), version=version) == [0] * 4
        scene.broker.authorizer = Only(Operation.WRITE, names=["last"])
        refused = await told(Producer(scene), scene, batch(), version=version)
        assert refused == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 4
        assert scene.log("plain").log_end_offset == 4
        assert True in known


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"transactional": True, "producer_id": 5, "producer_epoch": 0, "base_sequence": 0}, 53),
        ({"control": True}, ErrorCode.INVALID_RECORD),
        ({"base_offset": 1}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": 7}, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ({"size": 2_000_000}, ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
async def test_records_that_are_refused_amid_others(bad: dict[str, Any], code: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            first = batch(producer_id=5, producer_epoch=0, base_sequence=0)
            assert await told(producer, scene, first) == [0] * 4  # the same, which is a duplicate
            assert scene.log("plain").log_end_offset == 1
        assert await told(producer, scene, batch()) == [0] * 4
        end = scene.log("plain").log_end_offset
        assert await told(producer, scene, batch(**bad), times=2) == [code] * 2
        assert scene.log("plain").log_end_offset == end
        assert await told(producer, scene, batch(), times=1) == [0]


@pytest.mark.parametrize("more", [[], [1]])
async def test_who_may_not_write_in_transactions_is_refused(more: list[int], known: list[bool], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain", 2)
        await scene.create("last")
        of_it = await transactions.begin(scene)

        def frame(sequence: int) -> bytes:
            records = batch(
                transactional=True, producer_id=of_it.id, producer_epoch=of_it.epoch, base_sequence=sequence
            )
            return request(scene, records, acks=-1, transactional_id="t", more=[(index, records) for index in more])

        producer = Producer(scene)
        for sequence in range(5):
            (answer,) = await producer.send(frame(sequence))
            assert offsets(answer) == [(index, 0, sequence) for index in (0, *more)]
        assert known[-2:] == [True, True]
        scene.broker.authorizer = Only(Operation.WRITE, names=["plain", "last"])
        producer = Producer(scene)  # who has connected may go on
        for _ in range(4):
            (answer,) = await producer.send(frame(5))
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            assert offsets(answer) == [(index, code, -1) for index in (0, *more)]
        assert False in known[-4:]
        assert scene.log("plain").log_end_offset == 5


class Fails(Only):
    """An authorizer with a fault."""

    def allows(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if self.fails and name == "plain":
            raise RuntimeError("a fault")
        return True

    fails = False


async def test_a_fault_is_answered_and_so_is_what_came_with_it(
    known: list[bool], autojump_clock, caplog: pytest.LogCaptureFixture
) -> None:
    fails = Fails()
    async with running(authorizer=fails) as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch()) == [0] * 4
        assert await told(producer, scene, batch(), acks=-1) == [0] * 4
        fails.fails = True
        other = request(scene, batch(), topic="last")
        came = await producer.send(other, request(scene, batch()), other)
        assert [error(answer) for answer in came] == [0, ErrorCode.UNKNOWN_SERVER_ERROR, 0]
        assert scene.log("plain").log_end_offset == 8
        assert True in known
    assert "a fault" in caplog.text


@pytest.mark.parametrize("version", [7, 9, NEWEST])
@pytest.mark.parametrize(
    "harm",
    [
        lambda frame, size: frame[:-1],
        lambda frame, size: frame[:-3],
        lambda frame, size: frame[:-20],
        lambda frame, size: frame[: size + 1],
        lambda frame, size: frame[:size] + b"\x80",
        lambda frame, size: frame[:size] + b"\xff" * 100,
        lambda frame, size: frame[:size] + b"\x7f" + frame[size + 1 :],
        lambda frame, size: frame[:size] + bytes(100),
    ],
    ids=["cut", "cut tags", "cut records", "cut length", "cut varint", "endless varint", "another length", "null"],
)
async def test_what_is_no_request_behind_a_known_beginning(
    version: int, harm: Callable[[bytes, int], bytes], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """Is taken, or refused, as it is where nothing is known."""
    seen = []
    for learns in (True, False):
        if not learns:
            monkeypatch.setattr(Templates, "learn", lambda templates, shapes, call, frame: ())
        async with running() as scene:
            await scene.create("plain")
            await scene.create("last")
            producer = Producer(scene)
            blob = batch()
            assert await told(producer, scene, blob, version=version) == [0] * 4
            frame = request(scene, blob, version=version)
            width = 4 if version < 9 else 1
            came = await producer.send(harm(frame, frame.index(blob) - width))
            seen.append((came, scene.log("plain").log_end_offset))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("version", [7, 9, NEWEST])
@pytest.mark.parametrize("behind", [b"\0", b"\0\0\0", b"\0\1\0\0\0\0", bytes(70)])
async def test_bytes_behind_the_request_are_ignored_each_time(version: int, behind: bytes, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        for count in range(4):
            (answer,) = await producer.send(request(scene, batch(), version=version) + behind)
            assert offset(answer, version) == count


@pytest.mark.parametrize("more", [[], [(1, batch())]])
@pytest.mark.parametrize("version", [9, NEWEST])
async def test_what_has_tags_that_nobody_knows_does_not_become_known(
    version: int, more: list[tuple[int, bytes]], known: list[bool], autojump_clock
) -> None:
    """A template would look for records behind as many bytes as the tags have."""
    async with running() as scene:
        await scene.create("plain", 2)
        await scene.create("last")
        producer = Producer(scene)
        for count in range(6):
            frame = request(scene, batch(), version=version, more=more)
            (answer,) = await producer.send(frame[:-1] + b"\1\5\1x")
            assert offsets(answer, version)[0] == (0, 0, count)
    assert known[-6:] == [False, True] * 3


@pytest.mark.parametrize("version", [9, NEWEST])
async def test_a_topic_of_the_same_name_is_another_one(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch(), version=version) == [0] * 4
        frame = request(scene, batch(), version=version)
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="plain")], timeout_ms=1000))
        gone = ErrorCode.UNKNOWN_TOPIC_ID if version == NEWEST else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (answer,) = await producer.send(frame)
        assert error(answer, version) == gone
        await scene.create("plain")
        (answer,) = await producer.send(frame)
        assert error(answer, version) == (gone if version == NEWEST else 0)
        assert scene.log("plain").log_end_offset == (0 if version == NEWEST else 1)


async def test_who_leads_no_more_says_so(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch()) == [0] * 4
        await scene.place("plain", 2, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert await told(producer, scene, batch(), times=2) == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


async def test_with_a_follower_acks_all_waits_for_it(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch(), acks=-1) == [0] * 4
        assert await told(producer, scene, batch(), acks=1) == [0] * 4
        await scene.place("plain", 1, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert await told(producer, scene, batch(), times=1, acks=-1) == [ErrorCode.REQUEST_TIMED_OUT]
        assert await told(producer, scene, batch(), times=1, acks=1) == [0]
        assert scene.log("plain").high_watermark == 8


@pytest.mark.plain
async def test_what_may_take_long_is_left_to_the_handler(
    known: list[bool], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """Which has a worker walk the records."""
    async with running() as scene:
        await scene.create("compacted", cleanup_policy="compact")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch(), topic="compacted") == [0] * 4
        assert known[-2]  # of what is asked last; behind it stands what tells that all is answered
        monkeypatch.setattr(PendingWalk, "large", True)
        assert await told(producer, scene, batch(), times=1, topic="compacted") == [0]
        assert False in known[-2:]
        assert scene.log("compacted").log_end_offset == 5


async def test_while_an_append_waits_for_its_flush_acks_all_is_left_to_the_handler(
    known: list[bool], monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """Whose answer waits, too."""
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        for acks in (1, -1):
            assert await told(producer, scene, batch(), acks=acks) == [0] * 4
        await scene.log("plain").flush()  # since the first one it looks for who waits
        monkeypatch.setattr(Log, "settled_end_offset", 8)
        partition = scene.broker.replicas.partition("plain", 0)
        assert partition.commits_at_once
        assert await told(producer, scene, batch(), times=1, acks=1) == [0]
        assert not partition.commits_at_once
        assert await told(producer, scene, batch(), times=1, acks=-1) == [ErrorCode.REQUEST_TIMED_OUT]
        assert False in known[-2:]


async def test_what_is_known_wakes_a_fetch_that_waits(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("plain")
        await scene.create("last")
        producer = Producer(scene)
        assert await told(producer, scene, batch()) == [0] * 4
        partition = FetchPartition(partition=0, fetch_offset=4, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic_id=scene.id_of("plain"), partitions=[partition])
        fetched: list[Any] = []

        async def fetch() -> None:
            asked = FetchRequest(max_wait_ms=LONG, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
            fetched.append(await scene.call(asked))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await trio.testing.wait_all_tasks_blocked()
            before = trio.current_time()
            assert await told(producer, scene, batch(), times=1) == [0]
        assert trio.current_time() - before < 100
        assert fetched[0].responses[0].partitions[0].high_watermark == 5
