"""A connection answers in order, one request at a time, and its faults stay its own."""

from __future__ import annotations

from struct import pack, unpack
from types import SimpleNamespace

import pytest
import trio

from kwire.broker.connection import Connection
from kwire.broker.limited_log import LimitedLog
from kwire.broker.parked import Parked
from kwire.broker.receive_buffers import ReceiveBuffers
from kwire.broker.registry import Api, LoadedApi, Needs
from kwire.broker.request_memory import RequestMemory
from kwire.broker.session import ANONYMOUS, Session
from kwire.ports.clock import TrioClock
from kwire.ports.memory_transport import MemoryNetwork
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kwire.security.authorizer import AllowAll


class Script:
    """Stands for a broker whose one API does what the test says, request by request."""

    def __init__(self) -> None:
        self.clock = TrioClock()
        self.config = {"socket.request.max.bytes": 1000}
        self.registry = self
        self.found: dict[tuple[int, int], LoadedApi] = {}
        self.request_memory = RequestMemory(100)
        self.receive_buffers = ReceiveBuffers()
        self.limited_log = LimitedLog()
        self.started: list[int] = []
        self.replies: list[object] = []
        self.failed: DescribeClusterResponse | None = None
        self.patient(False)

    def patient(self, patient: bool) -> None:
        """Whether the API is one that can wait."""
        api = Api(ApiKey.DESCRIBE_CLUSTER, 0, 0, "describe_cluster", Needs.nothing(), patient=patient)
        self._api = LoadedApi(api, DescribeClusterRequest, DescribeClusterResponse, self._handle, self._failed)

    def find(self, key: int, version: int) -> LoadedApi | None:
        return self._api if (key, version) == (ApiKey.DESCRIBE_CLUSTER, 0) else None

    async def _handle(self, broker: object, context: object, request: object) -> object:
        self.started.append(len(self.started))
        reply = self.replies[len(self.started) - 1]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, trio.Event):
            await reply.wait()
            return answer("done")
        return reply

    def _failed(self, request: object, error: KafkaError) -> DescribeClusterResponse:
        return self.failed or DescribeClusterResponse(error_code=error.code, cluster_id="")


class Waits(Parked):
    def __init__(self, name: str, *, pipelined: bool) -> None:
        self.pipelined = pipelined
        self._name = name
        self.go = trio.Event()
        self.hurried = False

    def hurry(self) -> None:
        self.hurried = True
        self.go.set()

    async def response(self) -> DescribeClusterResponse:
        await self.go.wait()
        return answer(self._name)


class Fails(Waits):
    """Ends with an exception, or with a response that no bytes can say."""

    def __init__(self, failure: Exception | DescribeClusterResponse, *, pipelined: bool) -> None:
        super().__init__("", pipelined=pipelined)
        self._failure = failure

    async def response(self) -> DescribeClusterResponse:
        await self.go.wait()
        if isinstance(self._failure, Exception):
            raise self._failure
        return self._failure


UNSPEAKABLE = DescribeClusterResponse(cluster_id=None)  # type: ignore[arg-type]


def answer(name: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(cluster_id=name)


def request(correlation_id: int) -> bytes:
    header = encode_request_header(RequestHeader(ApiKey.DESCRIBE_CLUSTER, 0, correlation_id, "test"))
    body = header + codec.encode(DescribeClusterRequest(), 0)
    return pack(">i", len(body)) + body


@pytest.fixture
async def scene(nursery: trio.Nursery):
    script = Script()
    network = MemoryNetwork()
    listener = await network.transport("server").listen("server", 9092)
    made: list[Connection] = []

    async def serve(stream) -> None:
        connection = Connection(script, stream, Session("PLAINTEXT", ANONYMOUS, "client", "1", AllowAll()))
        made.append(connection)
        await connection.run(nursery.start_soon)

    nursery.start_soon(listener.serve, serve)

    async def connect():
        return await network.transport("client").connect("server", 9092)

    yield SimpleNamespace(script=script, stream=await connect(), made=made, connect=connect)
    nursery.cancel_scope.cancel()


async def answers(stream, count: int) -> list[tuple[int, str, int]]:
    """(correlation id, cluster id, error code) of the next `count` answers."""
    data = b""
    out = []
    with trio.fail_after(5):
        while len(out) < count:
            while len(data) < 4 or len(data) < 4 + unpack(">i", data[:4])[0]:
                received = await stream.receive(10_000)
                assert received, "the connection was closed"
                data += received
            size = unpack(">i", data[:4])[0]
            frame, data = data[4 : 4 + size], data[4 + size :]
            body = codec.decode(DescribeClusterResponse, 0, frame[5:])
            out.append((unpack(">i", frame[:4])[0], body.cluster_id, body.error_code))
    return out


async def closed(stream) -> bool:
    with trio.fail_after(5):
        return await stream.receive(10) == b""


async def test_requests_of_one_read_are_answered_in_order(scene) -> None:
    scene.script.replies = [answer("a"), answer("b"), answer("c")]
    await scene.stream.send([request(1) + request(2) + request(3)])
    assert await answers(scene.stream, 3) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]


async def test_a_client_waits_its_turn_until_it_asks_for_what_can_not_wait(scene) -> None:
    scene.script.replies = [answer("a"), answer("b"), answer("c")]
    await trio.testing.wait_all_tasks_blocked()
    stream = scene.made[0]._stream
    seen = [stream.patient]
    for number, patient in enumerate((True, False, True)):
        scene.script.patient(patient)
        await scene.stream.send([request(number)])
        await answers(scene.stream, 1)
        seen.append(stream.patient)
    assert seen == [True, True, False, True]


async def test_nothing_starts_behind_a_request_that_waits(scene) -> None:
    parked = Waits("b", pipelined=False)
    scene.script.replies = [answer("a"), parked, answer("c")]
    await scene.stream.send([request(1) + request(2) + request(3)])
    assert await answers(scene.stream, 1) == [(1, "a", 0)]
    await trio.testing.wait_all_tasks_blocked()
    assert scene.script.started == [0, 1]
    parked.go.set()
    assert await answers(scene.stream, 2) == [(2, "b", 0), (3, "c", 0)]


async def test_what_comes_behind_a_pipelined_request_starts_but_is_answered_after_it(scene) -> None:
    first, second = Waits("a", pipelined=True), Waits("c", pipelined=True)
    scene.script.replies = [first, answer("b"), second, answer("d")]
    await scene.stream.send([request(1) + request(2) + request(3) + request(4)])
    await trio.testing.wait_all_tasks_blocked()
    assert scene.script.started == [0, 1, 2, 3]
    second.go.set()
    await trio.testing.wait_all_tasks_blocked()
    first.go.set()
    assert await answers(scene.stream, 4) == [(1, "a", 0), (2, "b", 0), (3, "c", 0), (4, "d", 0)]


async def test_answers_that_wait_for_one_before_them_are_bounded(scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.broker.connection._MOST_QUEUED_BYTES", 100)
    first = Waits("a", pipelined=True)
    scene.script.replies = [first, answer("b" * 40), answer("c" * 40), answer("d")]
    for number in range(1, 5):
        await scene.stream.send([request(number)])
        await trio.testing.wait_all_tasks_blocked()
    assert scene.script.started == [0, 1, 2]
    first.go.set()
    assert [name[0] for _, name, _ in await answers(scene.stream, 4)] == ["a", "b", "c", "d"]
    assert scene.script.started == [0, 1, 2, 3]
    again = Waits("e", pipelined=True)
    scene.script.replies += [again, answer("f"), answer("g")]
    for number in range(5, 8):
        await scene.stream.send([request(number)])
        await trio.testing.wait_all_tasks_blocked()
    assert scene.script.started == [0, 1, 2, 3, 4, 5, 6]  # what was sent does not count any more
    again.go.set()
    assert [name for _, name, _ in await answers(scene.stream, 3)] == ["e", "f", "g"]


async def test_a_waiting_request_stands_behind_the_pipelined_ones_before_it(scene) -> None:
    first, second = Waits("a", pipelined=True), Waits("b", pipelined=False)
    scene.script.replies = [first, second]
    await scene.stream.send([request(1) + request(2)])
    await trio.testing.wait_all_tasks_blocked()
    second.go.set()
    first.go.set()
    assert await answers(scene.stream, 2) == [(1, "a", 0), (2, "b", 0)]


async def test_acks_0_gets_no_answer(scene) -> None:
    scene.script.replies = [None, answer("b")]
    await scene.stream.send([request(1) + request(2)])
    assert await answers(scene.stream, 1) == [(2, "b", 0)]


async def test_a_kafka_error_and_a_fault_are_answered_and_the_connection_goes_on(scene, caplog) -> None:
    scene.script.replies = [KafkaError(ErrorCode.NOT_CONTROLLER), ZeroDivisionError(), answer("c")]
    await scene.stream.send([request(1) + request(2) + request(3)])
    assert await answers(scene.stream, 3) == [
        (1, "", ErrorCode.NOT_CONTROLLER),
        (2, "", ErrorCode.UNKNOWN_SERVER_ERROR),
        (3, "c", 0),
    ]


@pytest.mark.parametrize("pipelined", [False, True])
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (OSError("no such disk"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_fails_while_it_waits_is_answered_too(scene, failure, code, pipelined: bool) -> None:
    parked = Fails(failure, pipelined=pipelined)
    scene.script.replies = [parked, answer("b")]
    await scene.stream.send([request(1) + request(2)])
    parked.go.set()
    assert await answers(scene.stream, 2) == [(1, "", code), (2, "b", 0)]


TOO_LONG = "x" * 0x8000
"""Longer than a string may be."""


async def test_an_answer_that_does_not_fit_is_told_as_a_fault(scene, caplog) -> None:
    scene.script.replies = [answer(TOO_LONG), answer("b")]
    await scene.stream.send([request(1) + request(2)])
    assert await answers(scene.stream, 2) == [(1, "", ErrorCode.UNKNOWN_SERVER_ERROR), (2, "b", 0)]
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [("ERROR", False)]


@pytest.mark.parametrize("pipelined", [False, True])
async def test_what_does_not_fit_after_a_wait_is_told_as_a_fault_too(scene, pipelined: bool) -> None:
    parked = Waits(TOO_LONG, pipelined=pipelined)
    scene.script.replies = [parked, answer("b")]
    await scene.stream.send([request(1) + request(2)])
    parked.go.set()
    assert await answers(scene.stream, 2) == [(1, "", ErrorCode.UNKNOWN_SERVER_ERROR), (2, "b", 0)]


@pytest.mark.parametrize("pipelined", [False, True])
async def test_an_answer_that_cannot_be_told_ends_its_connection_alone(scene, caplog, pipelined: bool) -> None:
    parked = Fails(UNSPEAKABLE, pipelined=pipelined)
    scene.script.replies = [parked, answer("b")]
    scene.script.failed = UNSPEAKABLE
    await scene.stream.send([request(1)])
    parked.go.set()
    assert await closed(scene.stream)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    other = await scene.connect()
    await other.send([request(2)])
    assert await answers(other, 1) == [(2, "b", 0)]


async def test_what_waits_for_a_client_that_has_gone_is_given_up(scene) -> None:
    first, second = Waits("a", pipelined=True), Waits("b", pipelined=True)
    scene.script.replies = [first, second]
    await scene.stream.send([request(1) + request(2)])
    await trio.testing.wait_all_tasks_blocked()
    scene.made[0].close()
    await trio.testing.wait_all_tasks_blocked()
    assert (first.hurried, second.hurried) == (True, True)


async def test_closing_ends_the_wait_of_a_request(scene) -> None:
    parked = Waits("a", pipelined=False)
    scene.script.replies = [parked]
    await scene.stream.send([request(1)])
    await trio.testing.wait_all_tasks_blocked()
    scene.made[0].close()
    await trio.testing.wait_all_tasks_blocked()
    assert parked.hurried


async def test_many_requests_of_one_read_let_others_have_their_turn(scene) -> None:
    class Slow(TrioClock):
        def monotonic(self) -> float:
            scene.seconds += 1
            return scene.seconds

    scene.seconds = 0
    scene.script.clock = Slow()
    scene.script.replies = [answer(str(number)) for number in range(1000)]
    other = await scene.connect()
    await scene.stream.send([request(1) * 999])
    await other.send([request(2)])
    assert await answers(other, 1) != [(2, "999", 0)]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(pack(">i", -5), id="negative size"),
        pytest.param(pack(">i", 1001), id="too large"),
        pytest.param(pack(">ihhih", 10, 999, 0, 1, -1), id="unknown key"),
        pytest.param(pack(">ihhih", 10, ApiKey.DESCRIBE_CLUSTER, 7, 1, -1), id="unknown version"),
        pytest.param(pack(">ihh", 4, ApiKey.DESCRIBE_CLUSTER, 0), id="cut header"),
        pytest.param(pack(">ihhih", 10, ApiKey.DESCRIBE_CLUSTER, 0, 1, -1), id="cut body"),
    ],
)
async def test_a_bad_frame_closes_the_connection_after_the_answers_before_it(scene, bad: bytes) -> None:
    scene.script.replies = [answer("a")]
    await scene.stream.send([request(1) + bad])
    assert await answers(scene.stream, 1) == [(1, "a", 0)]
    assert await closed(scene.stream)


async def test_a_request_is_activity_while_it_is_worked_on_but_not_while_it_waits(scene) -> None:
    work, parked = trio.Event(), Waits("b", pipelined=False)
    scene.script.replies = [work, parked]
    await scene.stream.send([request(1) + request(2)])
    await trio.testing.wait_all_tasks_blocked()
    later = trio.current_time() + 1000
    assert scene.made[0].last_active(later) == later
    work.set()
    await trio.testing.wait_all_tasks_blocked()
    assert scene.made[0].last_active(later) < later


async def test_stopping_answers_what_waits_and_closes(scene) -> None:
    scene.script.replies = [Waits("a", pipelined=False)]
    await scene.stream.send([request(1)])
    await trio.testing.wait_all_tasks_blocked()
    scene.made[0].stop()
    assert await answers(scene.stream, 1) == [(1, "a", 0)]
    assert await closed(scene.stream)


async def test_stopping_closes_an_idle_connection(scene) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scene.made[0].stop()
    assert await closed(scene.stream)


async def test_a_large_request_waits_for_room_and_then_goes_on(scene) -> None:
    scene.script.replies = [answer("a")]
    await scene.script.request_memory.take(100)
    large = request(1)[4:] + bytes(200)
    await scene.stream.send([pack(">i", len(large)), large[:10]])
    await trio.testing.wait_all_tasks_blocked()
    await scene.stream.send([large[10:]])
    await trio.testing.wait_all_tasks_blocked()
    assert scene.script.started == []
    scene.script.request_memory.give_back(100)
    assert await answers(scene.stream, 1) == [(1, "a", 0)]


async def test_a_lost_connection_gives_its_room_back(scene) -> None:
    await scene.stream.send([pack(">i", 900), b"x"])
    await trio.testing.wait_all_tasks_blocked()
    scene.stream.close()
    with trio.fail_after(5):
        await scene.script.request_memory.take(1)
