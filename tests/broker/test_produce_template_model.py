"""What templates of Produce know changes nothing: two brokers, one without them, are asked the same."""

from __future__ import annotations

from typing import Any

import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.records.compression import Compression
from kwire.security.authorizer import Operation
from tests.broker.raw_produce import NEWEST, NOW, Producer, batch, request
from tests.broker.scene import Only, Scene, running
from tests.broker.template_steps import Step, harmed, harms, played_twice

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "small": {"max_message_bytes": "200"},
    "flushed": {"flush_messages": "1"},
    "recent": {"message_timestamp_before_max_ms": "1000"},
    "lz4": {"compression_type": "lz4"},
}

PARTITIONS = 4

OTHERS: dict[str, bytes | None] = {
    "good": batch(),
    "long": batch(size=300),
    "next": batch(producer_id=6, producer_epoch=0, base_sequence=0),
    "not next": batch(producer_id=6, producer_epoch=0, base_sequence=7),
    "transactional": batch(transactional=True, producer_id=5, producer_epoch=0, base_sequence=0),
    "damaged": batch()[:-1] + b"?",
    "none": None,
}
"""What there is for other partitions."""


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
    others = draw(st.lists(st.tuples(st.sampled_from([0, 1, 1, 2, 3, 5]), st.sampled_from([*OTHERS])), max_size=3))
    times = draw(st.integers(1, 4))
    harm = draw(harms() | st.just("no records"))

    async def send(scene: Scene, producer: Producer) -> list[list[bytes]]:
        blob = batch(**records)
        more = [(index, OTHERS[kind]) for index, kind in others]
        frame = request(scene, blob, more=more, **asked)
        bad = request(scene, None, more=more, **asked) if isinstance(harm, str) else harmed(frame, harm)
        came = [await producer.send(*[frame] * times)]
        if bad != frame:
            came += [await producer.send(bad), await producer.send(frame)]
        return came

    return Step(send, f"{asked} {records} {others} {times} times, harm: {harm}")


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
                await scene.create(topic, PARTITIONS)
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
            await scene.create(topic, PARTITIONS, **configs)
        producer = Producer(scene)
        seen: list[Any] = [await step.do(scene, producer) for step in steps]
        for topic in TOPICS:
            for index in range(PARTITIONS):
                log = scene.broker.logs.get(topic, index)
                part = log and log.read(0, 1 << 20).slice
                end = log and (log.log_end_offset, log.high_watermark)
                seen.append((topic, index, end, part and bytes(part.read())))
        assert await scene.call(MetadataRequest(topics=None))
        return seen


@given(st.lists(sending() | sending() | changing(), max_size=6))
def test_what_is_known_changes_nothing(steps: list[Step]) -> None:
    as_before, understood = played_twice(played, steps)
    assert as_before == understood
