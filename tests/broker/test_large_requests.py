"""Large requests are received into buffers that are used again, and nothing of one is seen in another."""

from __future__ import annotations

import gc
from collections.abc import Callable
from struct import pack
from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.dispatch import understand
from kwire.broker.frames import LARGE
from kwire.broker.receive_buffers import MOST_BUFFERS
from kwire.ports.executor import InlineExecutor
from kwire.ports.tcp import TcpTransport
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.codec.runtime import skip_tags
from kwire.protocol.codec.varints import varint
from kwire.protocol.errors import ErrorCode
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.produce import ProduceRequest, TopicProduceData
from tests.broker.at_once import connected
from tests.broker.raw_produce import Producer, batch, request
from tests.broker.scene import HOST, PORT, Scene, running
from tests.interpreter_lock import turns_during
from tests.ports.streams import until

PARTITIONS = 40


def large(scene: Scene, number: int) -> tuple[bytes, list[bytes]]:
    """A request of 16 KB for each partition, and these."""
    batches = [batch(2, 8000, key=b"%d of %d" % (index, number)) for index in range(PARTITIONS)]
    return request(scene, batches[0], number, more=[*enumerate(batches)][1:]), batches


def written(scene: Scene, index: int) -> list[bytes]:
    """The batches of a partition, less what the broker sets in each."""
    log = scene.log("plain", index)
    active = log.segments.active
    data, batches = active.file.pread(active.size, 0), []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[16:size])
        data = data[size:]
    return batches


async def test_one_after_the_other_needs_no_more_memory(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as scene:
        await scene.create("plain", PARTITIONS)
        await scene.create("last")
        producer = Producer(scene)
        sent: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for number in range(12):
            frame, batches = large(scene, number)
            assert len(await producer.send(frame)) == 1
            for index, each in enumerate(batches):
                sent[index].append(each[16:])
        assert [written(scene, index) for index in range(PARTITIONS)] == sent
        # The one that comes behind another in the same piece finds that one's still in use.
        assert len(scene.broker.receive_buffers) <= 2


async def test_many_at_once_are_taken_whether_or_not_a_buffer_is_free(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as scene:
        await scene.create("plain", PARTITIONS)
        await scene.create("last")
        producers = [Producer(scene) for _ in range(3 * MOST_BUFFERS)]
        requests = [large(scene, number) for number in range(len(producers))]

        async def send(number: int) -> None:
            for _ in range(3):
                assert len(await producers[number].send(requests[number][0])) == 1

        async with trio.open_nursery() as nursery:
            for number in range(len(producers)):
                nursery.start_soon(send, number)
        for index in range(PARTITIONS):
            expected = [batches[index][16:] for _, batches in requests for _ in range(3)]
            assert sorted(written(scene, index)) == sorted(expected)
        assert len(scene.broker.receive_buffers) == MOST_BUFFERS


@pytest.mark.parametrize("bad", ["api", "version", "body", "size behind it", "not sent whole", "batch, acks 0"])
async def test_one_that_is_refused_leaves_its_buffer_to_others_at_once(
    bad: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Not when Python's collector comes, which is switched off."""
    async with running() as scene:
        await scene.create("plain", PARTITIONS)
        await scene.create("last")
        frame, _ = large(scene, 1)
        changed = {"api": (pack(">h", 999), 0), "version": (pack(">h", 99), 2), "body": (b"\xff" * 100, 60)}
        put, at = changed.get(bad, (b"", 0))
        frame = frame[:at] + put + frame[at + len(put) :]
        if bad == "batch, acks 0":
            batches = [batch(2, 8000)[:-1] + b"?" for _ in range(PARTITIONS)]
            frame = request(scene, batches[0], more=[*enumerate(batches)][1:], acks=0)
        sent = pack(">i", len(frame)) + frame
        if bad == "size behind it":
            sent += pack(">i", -1)
        elif bad == "not sent whole":
            sent = sent[:-1]
        gc.collect()
        gc.disable()
        try:
            for _ in range(MOST_BUFFERS + 2):
                stream = await scene.network.transport("raw").connect(HOST, PORT)
                good = request(scene, batch())
                await stream.send([pack(">i", len(good)) + good])
                assert await stream.receive(1000)  # from now on it is attended
                await stream.send([sent])
                if bad == "not sent whole":
                    await trio.testing.wait_all_tasks_blocked()
                    stream.close()
                else:
                    while await stream.receive(1000):
                        pass
                await trio.testing.wait_all_tasks_blocked()
                assert len(scene.broker.receive_buffers) == 1
            assert scene.broker.receive_buffers.take(LARGE) is not None
            assert len(scene.broker.receive_buffers) == 1
        finally:
            gc.enable()


async def test_what_sends_a_large_request_slowly_is_not_idle() -> None:
    async with connected(TcpTransport(), largest_request=LARGE) as (client,):
        connection = client.connection
        began = connection.last_active(0)
        await client.stream.send([pack(">i", LARGE) + b"first"])
        await until(lambda: connection._exchange.needed > 1)
        active = connection.last_active(began + 100)
        assert active < began + 100
        for number in (1, 2):
            await client.stream.send([bytes(1000)])
            await until(lambda number=number: connection._stream.arrived == number * 1000)
            assert connection.last_active(began + number * 1000) == began + number * 1000
            assert connection.last_active(began + number * 1000 + 500) == began + number * 1000


async def test_a_large_request_is_decoded_aside(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Produce, too, unless it is known: it may be millions of topics without records."""
    aside: list[object] = []
    run = InlineExecutor.run

    async def noting(executor: InlineExecutor, function: Callable[..., Any], *arguments: object) -> Any:
        aside.append(function)
        return await run(executor, function, *arguments)

    monkeypatch.setattr(InlineExecutor, "run", noting)
    names = [f"{number:020}" for number in range(60_000)]
    async with running() as scene:
        await scene.create("plain", max_message_bytes="4000000")
        await scene.create("last")
        producer = Producer(scene)
        empty = [TopicProduceData(topic_id=bytes(16))] * 70_000
        nothing = ProduceRequest(acks=1, timeout_ms=1000, topic_data=empty)
        header = encode_request_header(RequestHeader(ApiKey.PRODUCE, 13, 1, "c"))
        aside.clear()
        assert len(await producer.send(header + codec.encode(nothing, 13))) == 1
        assert aside.count(understand) == 1
        for number in range(3):
            assert len(await producer.send(request(scene, batch(2), number))) == 1
        aside.clear()
        assert len(await producer.send(request(scene, batch(1100, 1000), 7))) == 1
        assert understand not in aside, "it is known by what it has in common with the small ones"
        assert (await scene.produce("plain", *[b"v" * 1000] * 1100)).error_code == 0
        assert aside.count(understand) == 1
        aside.clear()
        for few in False, True, False:
            topics = [MetadataRequestTopic(name=name) for name in (names[:10] if few else names)]
            response = await scene.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
            assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert len(response.topics) == len(topics)
        assert aside.count(understand) == 2


def test_others_go_on_while_many_tags_are_read() -> None:
    """By the worker thread that decodes a large request."""
    count = 300_000
    tags = varint(count) + b"\0\0" * count
    assert turns_during(lambda: skip_tags(tags, 0)) > 20
