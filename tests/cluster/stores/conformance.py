"""What every metadata store must do. A test module gives the fixture `stores`, a function that opens one more store on
the same metadata (the same one again where only one may be open), and imports these tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
import trio

from kwire.metadata.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    ConfigsChanged,
    ControllerChanged,
    InvalidChange,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from kwire.metadata.store import MetadataStore, VersionConflict
from kwire.protocol.errors import ErrorCode, KafkaError

Stores = Callable[[], Awaitable[MetadataStore]]


def topic(name: str, number: int = 1, partitions: int = 1) -> TopicCreated:
    states = tuple(PartitionImage((1,), (1,), 1) for _ in range(partitions))
    return TopicCreated(TopicImage(name, number.to_bytes(16, "big"), states), {"retention.ms": "5"})


async def test_starts_with_a_cluster_id_and_nothing_else(stores: Stores) -> None:
    image = (await stores()).image
    assert len(image.cluster_id) == 22
    assert not image.topics
    assert not image.brokers
    assert image.next_producer_id == 0


async def test_a_commit_is_in_the_image_when_it_returns(stores: Stores) -> None:
    store = await stores()
    before = store.image
    image = await store.commit([topic("a", partitions=3)])
    assert store.image == image
    assert image.version == before.version + 1
    assert image.cluster_id == before.cluster_id
    found = image.topic("a")
    assert found is not None
    assert len(found.partitions) == 3
    assert image.topic_by_id(found.id) is found
    assert image.config("topic", "a") == {"retention.ms": "5"}
    assert before.topic("a") is None


async def test_every_kind_of_change(stores: Stores) -> None:
    store = await stores()
    endpoint = Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT")
    moved = PartitionImage((1, 2), (2,), 2, 4, 9, (b"d" * 16, b"e" * 16))
    await store.commit([BrokerRegistered(BrokerImage(1, 7, (endpoint,), "rack", True)), ControllerChanged(1)])
    await store.commit([BrokerRegistered(BrokerImage(2, 8, ()))])
    await store.commit([topic("a", 1), topic("b", 2), topic("c", 3)])
    await store.commit([PartitionsAdded("a", (PartitionImage((1,), (1,), 1),)), PartitionChanged("a", 0, moved)])
    await store.commit([TopicDeleted("b"), BrokerUnregistered(2), ProducerIdsReserved(3000)])
    await store.commit([ConfigsChanged("topic", "a", {"x": "1", "y": "2"}, ("retention.ms",))])
    image = await store.commit([ConfigsChanged("broker", "", {"k": "v"}), ConfigsChanged("topic", "a", {}, ("x",))])
    assert image.controller_id == 1
    assert image.brokers == {1: BrokerImage(1, 7, (endpoint,), "rack", True)}
    assert image.brokers[1].endpoint("PLAINTEXT") == endpoint
    assert sorted(image.topics) == ["a", "c"]
    assert set(image.topic_names.values()) == {"a", "c"}
    assert image.partition("a", 0) == moved
    assert image.partition("a", 1) == PartitionImage((1,), (1,), 1)
    assert image.partition("a", 2) is None
    assert image.partition("b", 0) is None
    assert image.next_producer_id == 3000
    assert image.config("topic", "a") == {"y": "2"}
    assert image.config("topic", "b") == {}
    assert image.config("broker", "") == {"k": "v"}


async def test_all_changes_of_a_commit_or_none(stores: Stores) -> None:
    store = await stores()
    await store.commit([topic("a")])
    before = store.image
    for bad in (topic("a", 2), topic("z"), TopicDeleted("nope"), PartitionChanged("a", 5, PartitionImage((), (), 1))):
        with pytest.raises(InvalidChange):
            await store.commit([topic("b", 5), bad])
    assert store.image is before


async def test_a_commit_of_nothing_gives_the_image(stores: Stores) -> None:
    store = await stores()
    image = await store.commit([topic("a")])
    assert await store.commit([]) == image
    with pytest.raises(VersionConflict):
        await store.commit([], expected_version=image.version - 1)


async def test_a_conditional_commit_needs_the_newest_version(stores: Stores) -> None:
    store = await stores()
    version = store.image.version
    await store.commit([topic("a")], expected_version=version)
    with pytest.raises(VersionConflict) as conflict:
        await store.commit([topic("b", 2)], expected_version=version)
    assert (conflict.value.expected, conflict.value.actual) == (version, version + 1)
    assert store.image.topic("b") is None


async def test_of_conditional_commits_at_once_one_wins(stores: Stores) -> None:
    store = await stores()
    version = store.image.version
    won, lost = [], []

    async def attempt(number: int) -> None:
        try:
            await store.commit([topic(f"t{number}", number)], expected_version=version)
            won.append(number)
        except VersionConflict:
            lost.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(1, 8):
            nursery.start_soon(attempt, number)
    assert len(won) == 1
    assert len(lost) == 6
    assert list(store.image.topics) == [f"t{won[0]}"]


async def test_commits_at_once_all_happen(stores: Stores) -> None:
    store = await stores()
    images: list[MetadataImage] = []

    async def attempt(number: int) -> None:
        image = await store.commit([topic(f"t{number}", number)])
        assert image.topic(f"t{number}") is not None
        assert store.image.topic(f"t{number}") is not None
        images.append(image)

    async with trio.open_nursery() as nursery:
        for number in range(1, 30):
            nursery.start_soon(attempt, number)
    assert len(store.image.topics) == 29
    assert len({image.version for image in images}) == 29


async def test_subscribers_see_every_step_in_order_before_the_commit_returns(stores: Stores) -> None:
    store = await stores()
    start = store.image
    steps: list[tuple[int, int]] = []
    slow: list[int] = []

    async def first(old: MetadataImage, new: MetadataImage) -> None:
        assert store.image is old
        steps.append((old.version, new.version))

    async def second(old: MetadataImage, new: MetadataImage) -> None:
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        slow.append(new.version)

    unsubscribe = store.subscribe(first)
    store.subscribe(second)
    image = await store.commit([topic("a")])
    assert slow[-1] == image.version
    async with trio.open_nursery() as nursery:
        for number in range(2, 10):
            nursery.start_soon(store.commit, [topic(f"t{number}", number)])
    assert steps[0][0] == start.version
    assert steps[-1][1] == store.image.version
    assert all(before[1] == after[0] for before, after in pairwise(steps))
    seen = len(steps)
    unsubscribe()
    await store.commit([topic("z", 99)])
    assert len(steps) == seen
    assert slow[-1] == store.image.version


async def test_a_failing_subscriber_keeps_nobody_from_the_news(stores: Stores) -> None:
    store = await stores()
    seen = []

    async def fails(old: MetadataImage, new: MetadataImage) -> None:
        raise RuntimeError("on purpose")

    async def works(old: MetadataImage, new: MetadataImage) -> None:
        seen.append(new.version)

    store.subscribe(fails)
    store.subscribe(works)
    image = await store.commit([topic("a")])
    assert seen == [image.version]
    assert (await store.commit([topic("b", 2)])).version == image.version + 1


async def test_a_subscriber_that_waits_for_its_own_commit_is_told_so(stores: Stores) -> None:
    store = await stores()
    errors: list[str] = []

    async def commits(old: MetadataImage, new: MetadataImage) -> None:
        try:
            await store.commit([topic("b", 2)])
        except RuntimeError as error:
            errors.append(str(error))

    store.subscribe(commits)
    await store.commit([topic("a")])
    assert len(errors) == 1


async def test_a_commit_cancelled_once_begun_still_happens_whole(stores: Stores) -> None:
    store = await stores()
    told: list[int] = []

    async def slow(old: MetadataImage, new: MetadataImage) -> None:
        scope.cancel()
        await trio.lowlevel.checkpoint()
        told.append(new.version)

    store.subscribe(slow)
    with trio.CancelScope() as scope:
        await store.commit([topic("a")])
    assert store.image.topic("a") is not None
    assert told == [store.image.version]


async def test_a_commit_cancelled_while_it_waits_its_turn_does_not_happen(stores: Stores) -> None:
    store = await stores()
    begun, go_on = trio.Event(), trio.Event()

    async def holds_up(old: MetadataImage, new: MetadataImage) -> None:
        begun.set()
        await go_on.wait()

    store.subscribe(holds_up)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.commit, [topic("a")])
        await begun.wait()
        with trio.move_on_after(0):
            await store.commit([topic("b", 2)])
        go_on.set()
    await store.commit([topic("c", 3)])
    assert sorted(store.image.topics) == ["a", "c"]


async def test_a_closed_store_commits_no_more(stores: Stores) -> None:
    store = await stores()
    await store.close()
    with pytest.raises(KafkaError) as error:
        await store.commit([topic("a")])
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    await store.close()
