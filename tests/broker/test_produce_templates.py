"""A Produce request that is known from an earlier one is answered, and does, what it would have without that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import pack, unpack
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from kwire.broker.templates import Templates
from kwire.ports.transport import Stream, StreamClosed
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.record import Record
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.log import Log
from kwire.storage.record_walk import PendingWalk
from tests.broker.scene import HOST, PORT, Only, Scene, running

NOW = 1_700_000_000_000
NEWEST = 13
LONG = 1_000_000
"""Virtual seconds: longer than any request waits."""

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "small": {"max_message_bytes": "200"},
    "flushed": {"flush_messages": "1"},
    "recent": {"message_timestamp_before_max_ms": "1000"},
    "lz4": {"compression_type": "lz4"},
}


def batch(count: int = 1, size: int = 10, *, key: bytes | None = b"k", time_ms: int = NOW, **options: Any) -> bytes:
    return build_batch([Record(index, time_ms, key, b"v" * size, []) for index in range(count)], **options)


def request(
    scene: Scene,
    records: bytes | None,
    correlation_id: int = 1,
    *,
    topic: str = "plain",
    version: int = NEWEST,
    acks: int = 1,
    client_id: str | None = "c",
    index: int = 0,
    transactional_id: str | None = None,
) -> bytes:
    """A frame, without its length."""
    named: Any = {"topic_id": scene.id_of(topic)} if version >= 13 else {"name": topic}
    asked = TopicProduceData(**named, partition_data=[PartitionProduceData(index=index, records=records)])
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[asked])
    header = encode_request_header(RequestHeader(ApiKey.PRODUCE, version, correlation_id, client_id))
    return header + codec.encode(message, version)


class Producer:
    """A connection that sends frames as they are."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._stream: Stream | None = None

    async def send(self, *frames: bytes) -> list[bytes]:
        """The answers that came until one more request was answered, or the connection ended or said nothing."""
        if self._stream is None:
            self._stream = await self.scene.network.transport("raw").connect(HOST, PORT)
        last = request(self.scene, batch(), -7, topic="last")
        data, answers = b"", []
        with trio.move_on_after(LONG):
            try:
                await self._stream.send([pack(">i", len(frame)) + frame for frame in (*frames, last)])
                while came := await self._stream.receive(1 << 20):
                    data += came
                    while len(data) >= 4 and len(data) >= 4 + (size := unpack(">i", data[:4])[0]):
                        answers.append(data[4 : 4 + size])
                        data = data[4 + size :]
                        if answers[-1][:4] == pack(">i", -7):
                            return answers[:-1]
            except StreamClosed:
                pass
        self._stream.close()
        self._stream = None
        return [*answers, b"the end"]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request that may have been known: whether a template answered it."""
    found: list[bool] = []
    answer = Templates.answer

    def counted(self: Templates, *arguments: Any) -> bytes | None:
        answered = answer(self, *arguments)
        found.append(answered is not None)
        return answered

    monkeypatch.setattr(Templates, "answer", counted)
    return found


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


@dataclass
class Step:
    """What is done to both brokers."""

    do: Callable[[Scene, Producer], Any]
    text: str

    def __repr__(self) -> str:
        return self.text


def damaged(frame: bytes, position: int, value: int) -> bytes:
    """The frame with one byte behind its correlation id set."""
    data = bytearray(frame)
    data[8 + position % (len(frame) - 8)] = value
    return bytes(data)


@st.composite
def sending(draw: st.DrawFn) -> Step:
    """The same request several times, perhaps with one amid that is damaged, cut, or longer than it says."""
    records: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "count": st.sampled_from([1, 2, 9, 200]),
                "size": st.sampled_from([0, 50, 63, 300]),
                "key": st.none(),
                "time_ms": st.sampled_from([NOW - 10_000, NOW + 10_000_000]),
                "compression": st.sampled_from(Compression),
                "transactional": st.just(True),
                "control": st.just(True),
                "base_offset": st.just(1),
            },
        )
    )
    if draw(st.booleans()):
        records |= {"producer_id": 5, "producer_epoch": 0, "base_sequence": draw(st.sampled_from([0, 1, 2, -1]))}
    asked: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {"topic": st.sampled_from([*TOPICS, "plain"])},
            optional={
                "version": st.integers(3, NEWEST),
                "acks": st.sampled_from([0, -1, 2]),
                "client_id": st.sampled_from([None, "", "é", "__admin_client"]),
                "index": st.sampled_from([1, 5, -1]),
                "transactional_id": st.just("t"),
            },
        )
    )
    times = draw(st.integers(1, 4))
    harm = draw(
        st.none()
        | st.tuples(st.just("byte"), st.integers(0, 250), st.sampled_from([0, 1, 127, 128, 255]))
        | st.tuples(st.just("cut"), st.integers(1, 80))
        | st.tuples(st.just("more"), st.integers(1, 3))
        | st.just(("no records",))
    )

    async def send(scene: Scene, producer: Producer) -> list[list[bytes]]:
        blob = batch(**records)
        frame = request(scene, blob, **asked)
        bad = frame
        match harm:
            case ("byte", position, value):
                bad = damaged(frame, position, value)
            case ("cut", size):
                bad = frame[:-size]
            case ("more", size):
                bad = frame + bytes(size)
            case ("no records",):
                bad = request(scene, None, **asked)
        came = [await producer.send(*[frame] * times)]
        if bad != frame:
            came += [await producer.send(bad), await producer.send(frame)]
        return came

    return Step(send, f"{asked} {records} {times} times, harm: {harm}")


@st.composite
def changing(draw: st.DrawFn) -> Step:
    """Something that requests that were known depend on."""
    topic = draw(st.sampled_from([*TOPICS]))
    kind = draw(st.sampled_from(["recreate", "smaller", "compact", "forbid", "allow", "follower"]))

    async def change(scene: Scene, producer: Producer) -> None:
        match kind:
            case "recreate":
                states = [DeleteTopicState(name=topic)]
                await scene.call(DeleteTopicsRequest(topics=states, timeout_ms=1000))
                await scene.create(topic, 2)
            case "smaller" | "compact":
                name, value = ("max.message.bytes", "120") if kind == "smaller" else ("cleanup.policy", "compact")
                config = AlterableConfig(name=name, config_operation=0, value=value)
                resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
                await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
            case "forbid" | "allow":
                await producer.send(b"")  # which ends its connection; the next one may less, or more
                names = [name for name in ("last", *TOPICS) if kind == "allow" or name != topic]
                scene.broker.authorizer = Only(Operation.WRITE, names=names)
            case "follower":
                await scene.place(topic, 1, 2)
                await trio.testing.wait_all_tasks_blocked()

    return Step(change, f"{kind} {topic}")


async def played(steps: list[Step]) -> list[Any]:
    async with running() as scene:
        await scene.create("last")
        for topic, configs in TOPICS.items():
            await scene.create(topic, 2, **configs)
        producer = Producer(scene)
        seen: list[Any] = [await step.do(scene, producer) for step in steps]
        for topic in TOPICS:
            for index in (0, 1):
                log = scene.broker.logs.get(topic, index)
                part = log and log.read(0, 1 << 20).slice
                end = log and (log.log_end_offset, log.high_watermark)
                seen.append((topic, index, end, part and bytes(part.read())))
        assert await scene.call(MetadataRequest(topics=None))
        return seen


@given(st.lists(sending() | sending() | changing(), max_size=6))
def test_what_is_known_changes_nothing(steps: list[Step]) -> None:
    def play() -> list[Any]:
        return trio.run(played, steps, clock=trio.testing.MockClock(autojump_threshold=0))

    as_before = play()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Templates, "learn", lambda self, shapes, call, frame: ())
        understood = play()
    assert as_before == understood
