"""One connection: negotiation, pipelining, cancellation, time-outs, brokers that misbehave."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.client.connection import Connection, response_type
from kwire.client.errors import BrokerUnreachable, ConnectionLost, ProtocolViolation, RequestTimeout, UnsupportedApi
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.transport import Stream
from kwire.protocol import codec
from kwire.protocol.messages.api_versions import ApiVersionsRequest
from kwire.protocol.messages.fetch import FetchRequest, FetchResponse
from kwire.protocol.messages.list_offsets import ListOffsetsRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataResponse


async def connect(network: MemoryNetwork, **options: object) -> Connection:
    return await Connection.open(network.transport("here"), "broker", 9092, **options)  # type: ignore[arg-type]


def test_the_response_type_of_a_request() -> None:
    assert response_type(FetchRequest) is FetchResponse


async def test_the_newest_common_version_is_used(network, broker) -> None:
    broker.on(MetadataRequest, MetadataResponse(), versions=(0, 7))
    connection = await connect(network, client_id="me")
    await connection.call(MetadataRequest(topics=None))
    await connection.call(MetadataRequest(topics=None), 3)
    assert [version for version, _ in broker.requests[1:]] == [7, 3]
    assert set(broker.client_ids) == {"me"}
    assert connection.version(MetadataRequest, at_most=5) == 5


async def test_versions_that_do_not_meet(network, broker) -> None:
    broker.on(MetadataRequest, MetadataResponse(), versions=(20, 22))
    connection = await connect(network)
    with pytest.raises(UnsupportedApi, match="Metadata in versions 20 to 22, this client in 0 to 13"):
        await connection.call(MetadataRequest())
    with pytest.raises(UnsupportedApi, match="no API ListOffsets"):
        await connection.call(ListOffsetsRequest())


async def test_too_old_for_what_is_needed(network, broker) -> None:
    broker.on(ListOffsetsRequest, None, versions=(1, 5))
    connection = await connect(network)
    connection.require(ListOffsetsRequest, 5)
    with pytest.raises(UnsupportedApi, match="too old"):
        connection.require(ListOffsetsRequest, 6)


@pytest.mark.parametrize("highest", [0, 1, 2, 3])
async def test_a_broker_with_older_api_versions(network, broker, highest: int) -> None:
    broker.versions[ApiVersionsRequest] = (0, highest)
    connection = await connect(network)
    assert connection.api_versions[MetadataRequest.api_key] == (0, 13)
    assert [version for version, request in broker.requests] == [highest]


async def test_responses_find_their_requests(network, broker) -> None:
    broker.on(MetadataRequest, lambda request: MetadataResponse(cluster_id=request.topics[0].name))
    connection = await connect(network)
    found: dict[str, str] = {}

    async def ask(name: str) -> None:
        found[name] = (await connection.call(metadata_of(name))).cluster_id

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(ask, f"t{number}")
    assert found == {f"t{number}": f"t{number}" for number in range(50)}
    assert broker.connections == 1


def metadata_of(name: str) -> MetadataRequest:
    from kwire.protocol.messages.metadata import MetadataRequestTopic

    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


async def test_requests_are_pipelined(network, broker) -> None:
    """The second request is at the broker before the first is answered."""
    both_sent = trio.Event()

    async def answer(request: MetadataRequest) -> MetadataResponse:
        await both_sent.wait()
        return MetadataResponse()

    broker.on(MetadataRequest, answer)
    connection = await connect(network)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.call, metadata_of("a"))
        nursery.start_soon(connection.call, metadata_of("b"))
        await trio.testing.wait_all_tasks_blocked()
        both_sent.set()


async def test_a_cancelled_caller_leaves_the_connection_sound(network, broker) -> None:
    """Also where it was the one that read for all."""
    go = trio.Event()

    async def answer(request: MetadataRequest) -> MetadataResponse:
        await go.wait()
        return MetadataResponse(cluster_id=request.topics[0].name)

    broker.on(MetadataRequest, answer)
    connection = await connect(network)
    answers: list[str] = []

    async def ask(name: str, scope: trio.CancelScope) -> None:
        with scope:
            answers.append((await connection.call(metadata_of(name))).cluster_id)

    scopes = [trio.CancelScope() for _ in range(4)]
    async with trio.open_nursery() as nursery:
        for number, scope in enumerate(scopes):
            nursery.start_soon(ask, f"t{number}", scope)
            await trio.testing.wait_all_tasks_blocked()
        scopes[0].cancel()
        scopes[2].cancel()
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert answers == ["t1", "t3"]
    assert (await connection.call(metadata_of("t4"))).cluster_id == "t4"


class _Pieces:
    """A stream that, when told to, gives these pieces, one at each read."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.go = trio.Event()

    async def send(self, data: object) -> None:
        await trio.lowlevel.checkpoint()

    async def receive(self, size: int) -> bytes:
        await self.go.wait()
        return self.pieces.pop(0)

    def close(self) -> None:
        pass


def metadata_frame(correlation_id: int) -> bytes:
    body = codec.encode(MetadataResponse(), 0)
    return (4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body


@pytest.mark.parametrize("turn", range(20))
async def test_whose_turn_it_is_to_read_may_be_cancelled(turn: int, autojump_clock) -> None:
    """The response of the first comes as the second is cancelled: the third reads on. Trio draws who runs first."""
    stream = _Pieces([metadata_frame(0), metadata_frame(1) + metadata_frame(2)])
    connection = Connection(stream, "broker", 9092)  # type: ignore[arg-type]
    answered: list[int] = []
    scopes = [trio.CancelScope() for _ in range(3)]

    async def ask(number: int) -> None:
        with scopes[number]:
            await connection.call(MetadataRequest(), 0)
            answered.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(ask, number)
            await trio.testing.wait_all_tasks_blocked()
        stream.go.set()
        scopes[1].cancel()
    assert answered == [0, 2]
    assert trio.current_time() < 1


async def test_a_late_response_closes_the_connection(network, broker, autojump_clock) -> None:
    broker.on(MetadataRequest, None)
    connection = await connect(network, request_timeout=5)
    outcomes: list[type] = []

    async def ask(timeout: float | None) -> None:
        try:
            await connection.call(MetadataRequest(), timeout=timeout)
        except ConnectionLost as error:
            outcomes.append(type(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, 100.0)
        nursery.start_soon(ask, None)
    assert trio.current_time() == pytest.approx(5, abs=1)
    assert sorted(outcomes, key=str) == [ConnectionLost, RequestTimeout]
    assert connection.closed
    with pytest.raises(ConnectionLost, match="no Metadata response within 5 s"):
        await connection.call(MetadataRequest())


async def test_a_broker_that_leaves(network, broker) -> None:
    connection = await connect(network)
    broker.drop_next = True
    with pytest.raises(ConnectionLost, match="broker:9092 lost: closed by the broker"):
        await connection.call(MetadataRequest())
    assert connection.closed


async def test_closing_wakes_the_caller(network, broker) -> None:
    broker.on(MetadataRequest, None)
    connection = await connect(network)

    async def ask() -> None:
        with pytest.raises(ConnectionLost, match="this side"):
            await connection.call(MetadataRequest())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        connection.close()


async def test_nobody_there(network, autojump_clock) -> None:
    with pytest.raises(BrokerUnreachable, match="broker:9092: Connection refused"):
        await connect(network)
    network.cut("here", "broker")
    with pytest.raises(BrokerUnreachable, match="broker:9092 did not answer within 10 s"):
        await connect(network)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"HTTP/1.1 400 Bad Request", r"a response of 1213486160 bytes .* is this a Kafka listener"),
        (b"\xff\xff\xff\xff", "a response of -1 bytes"),
        (b"\0\0\0\x04\0\0\0\x07", "the response to request 0 was due, that to 7 came"),
        (b"\0\0\0\x05\0\0\0\0\0", "cannot read its ApiVersions response in version 4"),
        (b"\0\0\0\x0a\0\0\0\0\0\x2a\0\0\0\0", "cannot read its ApiVersions response|INVALID_REQUEST"),
    ],
)
async def test_what_is_no_kafka_broker(network, nursery, said: bytes, complaint: str) -> None:
    async def say(stream: Stream) -> None:
        await stream.receive(1000)
        await stream.send([said])
        await trio.sleep_forever()

    listener = await network.transport("broker").listen("broker", 9092)
    nursery.start_soon(listener.serve, say)
    with pytest.raises(ProtocolViolation, match=complaint):
        await connect(network)


async def test_a_response_larger_than_allowed(network, broker) -> None:
    broker.on(MetadataRequest, MetadataResponse(cluster_id="x" * 10_000))
    connection = await connect(network, max_response_bytes=5000)
    with pytest.raises(ProtocolViolation, match="at most 5000"):
        await connection.call(MetadataRequest())
    assert connection.closed


async def test_a_response_that_arrives_in_pieces(network, nursery) -> None:
    """Byte by byte, and several in one piece."""
    from kwire.client.frames import FrameReader

    frames = [b"abcd", b"e" * 1000, b"fghi"]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)

    for size in (1, 7, 500, len(data)):

        async def say(stream: Stream, size: int = size) -> None:
            for start in range(0, len(data), size):
                await stream.send([data[start : start + size]])

        listener = await network.transport("broker").listen("broker", size)
        nursery.start_soon(listener.serve, say)
        reader = FrameReader(await network.transport("here").connect("broker", size), 1000)
        assert [bytes(await reader.read()) for _ in frames] == frames
