"""Where offsets are reset to: durations, and the nearest offsets that a log has."""

from __future__ import annotations

import pytest
import trio

from kwire.cli.resets import Reset, Target, Where, parse_duration, resolve_reset
from kwire.cli.running import CommandError
from kwire.client.client import Client
from kwire.client.group_offsets import CommittedOffset
from kwire.ports.memory_transport import MemoryNetwork
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kwire.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import PORT, ScriptedBroker, metadata


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P7D", 7 * 86_400_000),
        ("PT12H", 12 * 3_600_000),
        ("P1DT2H30M", 86_400_000 + 9_000_000),
        ("PT0.5S", 500),
        ("PT1.0019S", 1001),
        ("PT0S", 0),
    ],
)
def test_a_duration(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "1D", "P1H", "PT1D", "P1DT", "-P1D", "PT.5S", "P1W", "P1M"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration like"):
        parse_duration(text)


A, B = ("t", 0), ("t", 1)


def listed(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Both partitions begin at 10 and end at 50; only the first has a record of time 1000, at 30."""

    def offset(partition: int, timestamp: int) -> int:
        return {-2: 10, -1: 50}.get(timestamp, 30 if partition == 0 else -1)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, offset=offset(each.partition_index, each.timestamp)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@pytest.fixture
async def client(nursery: trio.Nursery) -> Client:
    """Of a cluster with that topic."""
    network = MemoryNetwork()
    broker = ScriptedBroker(network.transport("broker"))
    broker.on(MetadataRequest, metadata({"t": [1, 1]}))
    broker.on(ListOffsetsRequest, listed)
    await nursery.start(broker.run)
    return Client(network.transport("here"), [("broker", PORT)])


@pytest.mark.parametrize(
    ("reset", "first", "second"),
    [
        (Reset(Where.EARLIEST), Target(10), Target(10)),
        (Reset(Where.LATEST), Target(50), Target(50)),
        (Reset(Where.CURRENT), Target(20), Target(50)),
        (Reset(Where.TIME, 1000), Target(30), Target(50)),
        (Reset(Where.OFFSET, 12), Target(12), Target(12)),
        (Reset(Where.OFFSET, 9), Target(10, 9), Target(10, 9)),
        (Reset(Where.OFFSET, 51), Target(50, 51), Target(50, 51)),
    ],
    ids=str,
)
async def test_offsets(client: Client, reset: Reset, first: Target, second: Target) -> None:
    """The group has an offset for the first partition alone."""
    committed = {A: CommittedOffset(20, -1, "")}
    assert await resolve_reset(client, reset, [A, B], committed) == {A: first, B: second}


@pytest.mark.parametrize(
    ("by", "target"), [(5, Target(25)), (-5, Target(15)), (-11, Target(10, 9)), (31, Target(50, 51))]
)
async def test_a_shift(client: Client, by: int, target: Target) -> None:
    committed = {A: CommittedOffset(20, -1, "")}
    assert await resolve_reset(client, Reset(Where.SHIFT, by), [A], committed) == {A: target}
    with pytest.raises(CommandError, match="t-1 cannot be shifted: the group has no offset for it"):
        await resolve_reset(client, Reset(Where.SHIFT, by), [A, B], committed)


async def test_what_is_beyond_the_log_now_is_not_kept(client: Client) -> None:
    """Its first records may have been deleted since."""
    committed = {A: CommittedOffset(5, -1, "")}
    assert await resolve_reset(client, Reset(Where.CURRENT), [A], committed) == {A: Target(10, 5)}
