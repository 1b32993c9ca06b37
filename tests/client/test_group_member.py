"""Members of a group, with a broker in memory: what they are assigned, when they must join again, what they commit."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from kwire.client.client import Client
from kwire.client.errors import ConnectionLost
from kwire.client.group_member import (
    HEARTBEAT_INTERVAL,
    METADATA_MAX_AGE,
    SESSION_TIMEOUT,
    GroupMember,
    assign_ranges,
)
from kwire.client.group_offsets import committed_offsets
from kwire.client.groups import Groups
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.types import TopicPartition
from kwire.security.authorizer import Operation
from tests.broker.apis.groups import GROUP, join
from tests.broker.scene import HOST, PORT, Scene, running

PARTITIONS = 5
ALL = [("t", number) for number in range(PARTITIONS)]


class Reader:
    """A member with a client of its own, which joins again whenever it must."""

    def __init__(self, scene: Scene, name: str, *topics: str, group: str = "g") -> None:
        client = Client(scene.network.transport(name), [(HOST, PORT)], client_id=name)
        self.groups = Groups(client)
        self.member = GroupMember(self.groups, group, topics or ["t"])
        self.partitions: list[TopicPartition] = []
        self.joins = 0
        self._scope = trio.CancelScope()

    async def live(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.member.heartbeat)
                while True:
                    self.partitions = await self.member.join()
                    self.joins += 1
                    await self.member.until_stale()

    def fall_silent(self) -> None:
        self._scope.cancel()


async def settled(*readers: Reader) -> list[list[TopicPartition]]:
    """What each has, once nobody has anything to do any more."""
    await trio.sleep(3 * HEARTBEAT_INTERVAL)
    assert not any(reader.member.stale for reader in readers)
    return [reader.partitions for reader in readers]


async def test_alone(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", PARTITIONS)
        reader = Reader(scene, "a")
        nursery.start_soon(reader.live)
        assert await settled(reader) == [ALL]
        assert reader.joins == 1
        nursery.cancel_scope.cancel()


async def test_they_come_and_go(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", PARTITIONS)
        first, second = Reader(scene, "a"), Reader(scene, "b")
        nursery.start_soon(first.live)
        await settled(first)
        nursery.start_soon(second.live)
        assert await settled(first, second) == [ALL[:3], ALL[3:]]
        first.fall_silent()
        await first.member.leave()
        assert first.member.stale
        assert await settled(second) == [ALL]
        nursery.cancel_scope.cancel()


async def test_one_that_falls_silent_is_missed(autojump_clock) -> None:
    """What it commits afterwards does not count."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", PARTITIONS)
        first, second = Reader(scene, "a"), Reader(scene, "b")
        for reader in (first, second):
            nursery.start_soon(reader.live)
            await settled(reader)
        await settled(first, second)
        first.fall_silent()
        await trio.sleep(SESSION_TIMEOUT)
        assert await settled(second) == [ALL]
        assert not first.member.stale
        await first.member.commit({("t", 0): 7})
        assert first.member.stale
        await second.member.commit({("t", 1): 8})
        assert not second.member.stale
        found = await committed_offsets(second.groups, "g")
        assert {partition: committed.offset for partition, committed in found.items()} == {("t", 1): 8}
        assert await first.member.join()
        nursery.cancel_scope.cancel()


async def test_members_of_different_topics(autojump_clock) -> None:
    """Whoever leads hands out topics that it does not read itself."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        await scene.create("u", 2)
        readers = [Reader(scene, "a", "t", "u"), Reader(scene, "b", "u"), Reader(scene, "c", "absent")]
        for reader in readers:
            nursery.start_soon(reader.live)
        assert await settled(*readers) == [[("t", 0), ("t", 1), ("u", 0)], [("u", 1)], []]
        nursery.cancel_scope.cancel()


async def test_who_may_not(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.allow(Operation.DESCRIBE)
        with pytest.raises(KafkaError) as caught:
            await Reader(scene, "a").member.join()
        assert caught.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("subscriptions", "partitions", "assigned"),
    [
        ({}, {"t": 1}, {}),
        ({"a": ["t"]}, {"t": 3}, {"a": {"t": range(3)}}),
        ({"a": ["t"], "b": ["t"]}, {"t": 3}, {"a": {"t": range(2)}, "b": {"t": range(2, 3)}}),
        ({"a": ["t"], "b": ["t"], "c": ["t"]}, {"t": 2}, {"a": {"t": range(1)}, "b": {"t": range(1, 2)}, "c": {}}),
        ({"b": ["t"], "a": ["u"]}, {"t": 1, "u": 1, "v": 1}, {"a": {"u": range(1)}, "b": {"t": range(1)}}),
        ({"a": ["absent"]}, {}, {"a": {}}),
    ],
)
def test_ranges(
    subscriptions: dict[str, list[str]], partitions: dict[str, int], assigned: dict[str, dict[str, range]]
) -> None:
    assert assign_ranges(subscriptions, partitions) == assigned


NAMES = st.sampled_from("tuv")


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.sets(NAMES)),
    st.dictionaries(NAMES, st.integers(0, 9)),
)
def test_each_partition_goes_to_one_who_reads_its_topic(
    subscriptions: dict[str, set[str]], partitions: dict[str, int]
) -> None:
    assigned = assign_ranges(subscriptions, partitions)
    assert assigned.keys() == subscriptions.keys()
    for topic, count in partitions.items():
        readers = [member for member, topics in subscriptions.items() if topic in topics]
        shares = {member: list(assigned[member].get(topic, ())) for member in assigned}
        assert sorted(chain(*shares.values())) == (list(range(count)) if readers else [])
        sizes = [len(shares[member]) for member in readers]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        assert not any(shares[member] for member in assigned if member not in readers)


async def test_partitions_that_are_added_are_handed_out(autojump_clock) -> None:
    """The coordinator tells nobody: the leader looks."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        first, second = Reader(scene, "a"), Reader(scene, "b")
        nursery.start_soon(first.live)
        await settled(first)
        nursery.start_soon(second.live)
        assert await settled(first, second) == [ALL[:1], ALL[1:2]]
        more = CreatePartitionsTopic(name="t", count=PARTITIONS, assignments=None)
        await scene.call(CreatePartitionsRequest(topics=[more], timeout_ms=1000))
        joins = first.joins
        await trio.sleep(METADATA_MAX_AGE + HEARTBEAT_INTERVAL)
        assert await settled(first, second) == [ALL[:3], ALL[3:]]
        await trio.sleep(3 * METADATA_MAX_AGE)
        assert first.joins == joins + 1
        nursery.cancel_scope.cancel()


async def test_a_topic_that_comes_later_is_handed_out(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        reader = Reader(scene, "a")
        nursery.start_soon(reader.live)
        assert await settled(reader) == [[]]
        await scene.create("t", PARTITIONS)
        await trio.sleep(METADATA_MAX_AGE + HEARTBEAT_INTERVAL)
        assert await settled(reader) == [ALL]
        nursery.cancel_scope.cancel()


async def test_a_look_that_fails_ends_nothing(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    async def failing(groups: Groups, topics: Collection[str]) -> dict[str, int]:
        looks.append(trio.current_time())
        match len(looks):
            case 1:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            case 2:
                raise ConnectionLost("gone")
            case 3:
                return {}
        await trio.sleep_forever()
        return {}

    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", PARTITIONS)
        reader = Reader(scene, "a")
        nursery.start_soon(reader.live)
        await settled(reader)
        monkeypatch.setattr(Groups, "partition_counts", failing)
        await trio.sleep(5 * METADATA_MAX_AGE)
        assert len(looks) >= 4
        assert await settled(reader) == [ALL]
        assert reader.joins == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("restarts", [False, True])
async def test_it_waits_for_others_as_long_as_these_may_take(autojump_clock, restarts: bool) -> None:
    """A consumer of the Java client may take five minutes until it joins again."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", PARTITIONS)
        await join(scene, rebalance_timeout_ms=300_000, session_timeout_ms=600_000)
        reader = Reader(scene, "a", group=GROUP)
        nursery.start_soon(reader.live)
        await trio.sleep(200)
        assert reader.joins == 0
        if restarts:
            scene.network.reset(HOST)
        await trio.sleep(100 + 3 * HEARTBEAT_INTERVAL)
        assert reader.joins == 1
        assert await settled(reader) == [ALL]
        nursery.cancel_scope.cancel()
