"""A session beside full fetches: after any fetch the client knows of each partition what a full fetch would tell."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchResponse, PartitionData
from kwire.protocol.records.header import iter_batches
from tests.broker.apis.fetches import Asked, at, fetch
from tests.broker.scene import Scene, running

PARTITIONS = 6
STEPS = 120
LARGE = 1 << 20
WAIT_MS = 10_000


class Client:
    """One that reads on from where it is, sometimes pauses partitions, and sometimes asks for what it has once more."""

    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self.scene = scene
        self.chance = chance
        self.id = self.epoch = 0
        self.position: dict[tuple[str, int], int] = {}
        self.asked: dict[tuple[str, int], int] = {}
        """What the session has been told."""
        self.known: dict[tuple[str, int], PartitionData] = {}

    async def fetch(self, *, max_bytes: int = LARGE, max_wait_ms: int = 0) -> list[tuple[str, int]]:
        """The next fetch of the session; returns the partitions that brought records."""
        asked: list[Asked] = []
        for (topic, partition), offset in self.position.items():
            if self.asked.get((topic, partition)) != offset:
                asked.append(at(topic, offset, partition))
        forgotten = [key for key in self.asked if key not in self.position]
        response = await fetch(
            self.scene,
            *asked,
            session_id=self.id,
            session_epoch=self.epoch,
            forgotten=forgotten,
            max_bytes=max_bytes,
            max_wait_ms=max_wait_ms,
        )
        assert response.error_code == 0
        if not self.position:  # the session is over
            self.id = self.epoch = 0
            self.asked.clear()
            self.known.clear()
            return []
        self.id = response.session_id
        self.epoch += 1
        self.asked = dict(self.position)
        for key in forgotten:
            self.known.pop(key, None)
        return self._take(response)

    def _take(self, response: FetchResponse) -> list[tuple[str, int]]:
        brought = []
        names = {self.scene.id_of(topic): topic for topic in ("s", "t")}
        for topic in response.responses:
            for data in topic.partitions:
                key = names[topic.topic_id], data.partition_index
                self.known[key] = data
                if data.records:
                    brought.append(key)
                    if self.chance.random() < 0.9:
                        self.position[key] = max(header.next_offset for header, _ in iter_batches(data.records))
        return brought


async def complete(client: Client, brought: list[tuple[str, int]], before: dict[tuple[str, int], int]) -> None:
    """Everything that there was to read was brought, and all else is known as it is."""
    scene = client.scene
    for (topic, partition), offset in before.items():
        response = await fetch(scene, at(topic, offset, partition))
        (truth,) = response.responses[0].partitions
        known = client.known[topic, partition]
        seen = (known.error_code, known.high_watermark, known.log_start_offset)
        assert seen == (truth.error_code, truth.high_watermark, truth.log_start_offset), (topic, partition)
        assert bool(truth.records) == ((topic, partition) in brought), (topic, partition)


@pytest.mark.parametrize("seed", range(12))
async def test_a_session_tells_what_full_fetches_tell(seed: int, autojump_clock: object) -> None:
    chance = random.Random(seed)
    async with running() as scene:
        for topic in ("s", "t"):
            await scene.create(topic, PARTITIONS)
        client = Client(scene, chance)
        everything = [(topic, partition) for topic in ("s", "t") for partition in range(PARTITIONS)]

        async def change() -> None:
            topic, partition = chance.choice(everything)
            log = scene.log(topic, partition)
            if chance.random() < 0.75:
                await scene.produce(topic, *[b"x" * 20] * chance.randint(1, 4), partition=partition)
            elif chance.random() < 0.5:  # as retention does it, without a request
                log.advance_log_start(chance.randint(log.log_start_offset, log.high_watermark))
            else:
                offset = chance.randint(log.log_start_offset, log.high_watermark)
                told = DeleteRecordsTopic(
                    name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=offset)]
                )
                await scene.call(DeleteRecordsRequest(topics=[told], timeout_ms=1000))

        for _ in range(STEPS):
            for _ in range(chance.randint(0, 3)):
                await change()
            for key in chance.sample(everything, 3):
                if key in client.position and chance.random() < 0.3:
                    del client.position[key]
                elif key not in client.position:
                    log = scene.log(*key)
                    client.position[key] = chance.randint(log.log_start_offset, log.log_end_offset)
            for key in client.position:  # a client that is told that records are gone looks for the first that is left
                client.position[key] = max(client.position[key], scene.log(*key).log_start_offset)
            kind = chance.random()
            before = dict(client.position)
            if kind < 0.5 or not before:
                await complete(client, await client.fetch(), before)
            elif kind < 0.7:  # too little room for all of it: what is left comes with the next ones
                for _ in range(50):
                    before = dict(client.position)
                    brought = await client.fetch(max_bytes=chance.choice([1, 300]))
                    if not brought:
                        await complete(client, [], before)
                        break
                else:
                    raise AssertionError("it goes on without end")
            else:
                while await client.fetch():
                    pass
                before = dict(client.position)
                begun = trio.current_time()
                brought: list[tuple[str, int]] = []
                async with trio.open_nursery() as nursery:

                    @nursery.start_soon
                    async def wait() -> None:
                        brought.extend(await client.fetch(max_wait_ms=WAIT_MS))  # noqa: B023

                    await trio.testing.wait_all_tasks_blocked()
                    await trio.sleep(1)
                    key = chance.choice(list(before))
                    await produce_beside(scene, key)
                assert key in brought
                assert trio.current_time() - begun == pytest.approx(1)
                client.known.clear()
                client.id = client.epoch = 0  # a new session, since others may know more by now
                client.asked.clear()


async def produce_beside(scene: Scene, key: tuple[str, int]) -> None:
    """On a connection of its own: that of the scene waits."""
    connection = scene.connection
    scene.connection = await scene.another_connection()
    try:
        await scene.produce(key[0], b"late", partition=key[1])
    finally:
        scene.connection.close()
        scene.connection = connection


async def test_a_deleted_topic_is_told_although_nobody_asks(autojump_clock: object) -> None:
    async with running() as scene:
        await scene.create("s", PARTITIONS)
        await scene.create("t", PARTITIONS)
        client = Client(scene, random.Random(1))
        client.position = {("s", 1): 0, ("t", 2): 0}
        await client.fetch()
        assert await client.fetch() == []
        by_id = {scene.id_of(topic): topic for topic in ("s", "t")}
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        for epoch in (2, 3):
            response = await fetch(scene, session_id=client.id, session_epoch=epoch)
            told = [
                (by_id[topic.topic_id], data.error_code) for topic in response.responses for data in topic.partitions
            ]
            assert told == [("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
