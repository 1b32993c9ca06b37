"""Large requests are received into buffers that are used again, and nothing of one is seen in another."""

from __future__ import annotations

import trio

from kwire.broker.receive_buffers import MOST_BUFFERS
from tests.broker.raw_produce import Producer, batch, request
from tests.broker.scene import Scene, running

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
