"""What templates of Fetch know changes nothing: two brokers, one without them, are asked the same."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kwire.security.authorizer import Operation
from tests.broker.raw_fetch import NEWEST, request
from tests.broker.raw_produce import Producer, batch
from tests.broker.scene import Only, Scene, running
from tests.broker.template_steps import Step, harmed, harms, played_twice

TOPICS = ("plain", "other")
PARTITIONS = 3


FIELDS: list[tuple[str, Any, int]] = [
    ("min_bytes", 0, 4),
    ("min_bytes", 200, 4),
    ("min_bytes", 1 << 20, 4),
    ("max_bytes", 0, 4),
    ("max_bytes", 1, 4),
    ("max_bytes", 100, 4),
    ("max_bytes", 60_000, 4),
    ("max_bytes", -1, 4),
    ("max_wait_ms", 0, 4),
    ("max_wait_ms", -1, 4),
    ("isolation_level", 2, 4),
    ("session_id", 7, 7),
    ("session_epoch", 0, 7),
    ("session_epoch", 1, 7),
    ("rack_id", "r", 11),
    ("rack_id", "\u00e9" * 100, 11),
    ("client_id", None, 4),
    ("client_id", "\u00e9", 4),
]
"""What a request may say, one of them at a time, and the first version that has it."""
EACH: list[tuple[str, Any, int]] = [
    ("partition_max_bytes", 0, 4),
    ("partition_max_bytes", 1, 4),
    ("partition_max_bytes", 60_000, 4),
    ("partition_max_bytes", -1, 4),
    ("current_leader_epoch", 0, 9),
    ("current_leader_epoch", 1, 9),
    ("current_leader_epoch", -2, 9),
    ("last_fetched_epoch", 0, 12),
    ("last_fetched_epoch", -2, 12),
    ("log_start_offset", 1, 5),
    ("high_watermark", 3, 18),
]
"""Likewise of each partition."""


@st.composite
def fetching(draw: st.DrawFn) -> Step:
    """Requests that differ in their offsets, perhaps with one behind them that is harmed."""
    version = draw(st.integers(9, NEWEST) | st.sampled_from([4, 7, 12, 13, 16]))
    fields: dict[str, Any] = {"topic": draw(st.sampled_from(TOPICS)), "version": version}
    fields["isolation_level"] = draw(st.integers(0, 1))
    each: dict[str, Any] = {}
    for told, may_be, in_one_of in ((fields, FIELDS, 3), (each, EACH, 3)):
        if not draw(st.integers(0, in_one_of - 1)):
            name, value, since = draw(st.sampled_from(may_be))
            if version >= since:
                told[name] = value
    if version < 15 and not draw(st.integers(0, 9)):
        fields["replica_id"] = draw(st.sampled_from([1, 2, -2, -3]))
    index = st.sampled_from([*range(PARTITIONS)] * 4 + [PARTITIONS, -1])
    offset = st.sampled_from([*range(10)] * 2 + [5, 15, 30, -1, 1 << 40])
    asked = st.lists(st.tuples(index, offset), max_size=4)
    requests = draw(st.lists(asked, min_size=1, max_size=5))
    harm = draw(harms())

    async def send(scene: Scene, producer: Producer) -> list[bytes]:
        frames = [request(scene, asked, number, partition=each, **fields) for number, asked in enumerate(requests)]
        came = await producer.send(*frames)
        if harm is not None:
            came += await producer.send(harmed(frames[-1], harm))
            came += await producer.send(*frames)
        return came

    return Step(send, f"{fields} {each} {requests}, harm: {harm}")


@st.composite
def changing(draw: st.DrawFn) -> Step:
    """Something that what is fetched depends on."""
    topic, index = draw(st.sampled_from(TOPICS)), draw(st.integers(0, PARTITIONS - 1))
    kinds = ["small", "large", "open", "commit", "abort", "delete", "recreate", "forbid", "follower", "lead again"]
    kind = draw(st.sampled_from(kinds))

    async def change(scene: Scene, producer: Producer) -> None:
        match kind:
            case "small" | "large":
                size = 10 if kind == "small" else 20_000
                await scene.produce_blob(topic, batch(count=3, size=size), index)
            case "open":
                with suppress(KafkaError):
                    partition = scene.broker.replicas.partition(topic, index)
                    producer_id = 100 + partition.local_log().log_end_offset
                    guard = partition.begin_verification(producer_id, 0, 0, supports_epoch_bump=False)
                    opened = batch(transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=0)
                    await partition.append(opened, 1, verification=guard)
            case "commit" | "abort":
                log = scene.broker.logs.get(topic, index)
                for producer_id in [] if log is None else list(log.producer_state.ongoing.values()):
                    named = [WritableTxnMarkerTopic(name=topic, partition_indexes=[index])]
                    marker = WritableTxnMarker(
                        producer_id=producer_id, producer_epoch=0, transaction_result=kind == "commit", topics=named
                    )
                    await scene.call(WriteTxnMarkersRequest(markers=[marker]))
            case "delete":
                named_partition = DeleteRecordsPartition(partition_index=index, offset=2)
                topics = [DeleteRecordsTopic(name=topic, partitions=[named_partition])]
                await scene.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000))
            case "recreate":
                states = [DeleteTopicState(name=topic)]
                await scene.call(DeleteTopicsRequest(topics=states, timeout_ms=1000))
                await scene.create(topic, PARTITIONS)
            case "forbid":
                await producer.send(b"")  # which ends its connection; the next one may less
                scene.broker.authorizer = Only(Operation.READ, Operation.WRITE, names=["last", *TOPICS[1:]])
            case "follower":
                await scene.place(topic, 2, 1, partition=index)
                await trio.testing.wait_all_tasks_blocked()
            case "lead again":
                await scene.place(topic, 1, partition=index)
                await trio.testing.wait_all_tasks_blocked()

    return Step(change, f"{kind} {topic}-{index}")


@st.composite
def waiting(draw: st.DrawFn) -> Step:
    """A request from near the end of its partitions, and what happens while it may wait."""
    version = draw(st.integers(9, NEWEST))
    fields: dict[str, Any] = {"topic": draw(st.sampled_from(TOPICS)), "version": version}
    fields["isolation_level"] = draw(st.integers(0, 1))
    fields["min_bytes"] = draw(st.sampled_from([1, 1, 1, 150, 30_000]))
    fields["max_bytes"] = draw(st.sampled_from([1 << 20, 1 << 20, 100]))
    each = draw(st.sampled_from([{}, {}, {"partition_max_bytes": 100}, {"current_leader_epoch": 0}]))
    asked = draw(st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=PARTITIONS, unique=True))
    behind = draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    changes = draw(st.lists(changing(), max_size=3))

    async def wait(scene: Scene, producer: Producer) -> list[Any]:
        def end(index: int) -> int:
            log = scene.broker.logs.get(fields["topic"], index)
            return (0 if log is None else log.log_end_offset) - behind

        waiter, came = Producer(scene), []
        frame = request(scene, [(index, end(index)) for index in asked], partition=each, max_wait_ms=1000, **fields)

        async def fetch() -> None:
            # What is left of the time when a request is given to its handler is told in whole ms.
            came.extend([await waiter.send(frame), round(trio.current_time(), 1)])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetch)
            await trio.testing.wait_all_tasks_blocked()
            for step in changes:
                await step.do(scene, producer)
                await trio.sleep(0.3)
        return came

    return Step(wait, f"waits: {fields} {each} {asked} {behind} behind, meanwhile {changes}")


async def played(steps: list[Step]) -> list[Any]:
    async with running() as scene:
        for topic in ("last", *TOPICS):
            await scene.create(topic, PARTITIONS)
            for index in range(PARTITIONS):
                await scene.produce_blob(topic, batch(count=5, size=[10, 9_000, 50_000][index]), index)
        producer = Producer(scene)
        seen: list[Any] = [await step.do(scene, producer) for step in steps]
        assert await scene.call(MetadataRequest(topics=None))
        return seen


@given(st.lists(fetching() | fetching() | changing() | waiting(), max_size=6))
def test_what_is_known_changes_nothing(steps: list[Step]) -> None:
    as_before, understood = played_twice(played, steps, foreseen=True)
    assert as_before == understood
