"""flush.messages=1: requests that are acknowledged when they are on the disk, from one, ten and fifty connections.

Each connection has one request of one batch under way, as a producer that waits for each acknowledgement; the encoded
request is the same all the time, so that the client costs little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from struct import pack, unpack_from

import trio

from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds
from benchmarks.steps import Figures, StartBroker, Step
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record

CONNECTIONS = (1, 10, 50)
_VERSION = 9
_TOPIC = "flushed"
_WARM_UP_S = 2.0
_MEASURED_S = 5.0
_PAUSE_S = 0.05
_RECORDS = 10
_SIZE = 100


def steps() -> list[Step]:
    return [Step(f"flush.messages=1, {count} connections", _measure(count)) for count in CONNECTIONS]


def _measure(connections: int) -> Callable[[StartBroker], Figures]:
    def measure(make: StartBroker) -> Figures:
        broker = make()
        broker.config["log.flush.interval.messages"] = "1"
        try:
            broker.start()
            create_topic(broker.bootstrap, _TOPIC, 1)
            host, port = broker.bootstrap.rsplit(":", 1)
            trio.run(_load, host, int(port), connections, _WARM_UP_S)
            before = cpu_seconds(broker.pid)
            waits = trio.run(_load, host, int(port), connections, _MEASURED_S)
            cpu = cpu_seconds(broker.pid) - before
            return {
                "acknowledged requests/s": len(waits) / _MEASURED_S,
                "ms to the acknowledgement, median": statistics.median(waits) * 1000,
                "CPU s per 1,000 requests": cpu / len(waits) * 1000,
            }
        finally:
            broker.close()

    return measure


async def _load(host: str, port: int, connections: int, seconds: float) -> list[float]:
    """How long (s) each request took that was acknowledged within that time."""
    frame = _request()
    waits: list[float] = []
    ends = time.perf_counter() + seconds

    async def produce() -> None:
        stream = await trio.open_tcp_stream(host, port)
        while (began := time.perf_counter()) < ends:
            await stream.send_all(frame)
            answer = await _answer(stream)
            waited = time.perf_counter() - began
            if _accepted(answer):
                waits.append(waited)
            else:
                assert not waits  # a topic is not led the moment that it is made
                await trio.sleep(_PAUSE_S)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        for _ in range(connections):
            nursery.start_soon(produce)
    return waits


def _request() -> bytes:
    now = int(time.time() * 1000)
    batch = build_batch([Record(number, now, None, bytes(_SIZE), []) for number in range(_RECORDS)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=_TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )
    header = encode_request_header(RequestHeader(ApiKey.PRODUCE, _VERSION, 1, "bench"))
    body = header + codec.encode(request, _VERSION)
    return pack(">i", len(body)) + body


async def _answer(stream: trio.SocketStream) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + unpack_from(">i", data)[0]:
        part = await stream.receive_some(65536)
        assert part, "the broker has closed the connection"
        data += part
    return data[4:]


def _accepted(answer: bytes) -> bool:
    _, body_at = decode_response_header(ApiKey.PRODUCE, _VERSION, answer)
    response = codec.decode(ProduceResponse, _VERSION, answer[body_at:])
    return response.responses[0].partition_responses[0].error_code == 0
