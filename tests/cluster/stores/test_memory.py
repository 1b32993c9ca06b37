"""The store in memory: the conformance suite, several brokers on one, brokers cut off, injected faults."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.cluster.stores.memory import MemoryMetadata
from kwire.metadata.image import MetadataImage
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.cluster.stores.conformance import *  # noqa: F403
from tests.cluster.stores.conformance import Stores, topic


@pytest.fixture
def stores() -> Stores:
    metadata = MemoryMetadata()

    async def attach():
        return metadata.attach()

    return attach


async def test_a_commit_reaches_every_broker_before_it_returns() -> None:
    metadata = MemoryMetadata()
    one, two = metadata.attach(), metadata.attach()
    seen: list[int] = []

    async def note(old: MetadataImage, new: MetadataImage) -> None:
        seen.append(new.version)

    two.subscribe(note)
    image = await one.commit([topic("a")])
    assert two.image is image
    assert seen == [image.version]
    await two.close()
    await one.commit([topic("b", 2)])
    assert two.image is image
    assert metadata.attach().image is one.image


async def test_a_broker_cut_off_keeps_its_image_and_catches_up_in_one_step() -> None:
    metadata = MemoryMetadata()
    one, two = metadata.attach(), metadata.attach()
    steps: list[tuple[int, int]] = []

    async def note(old: MetadataImage, new: MetadataImage) -> None:
        steps.append((old.version, new.version))

    two.subscribe(note)
    two.pause()
    await one.commit([topic("a")])
    await one.commit([topic("b", 2)])
    assert two.image.version == 0
    await two.resume()
    assert two.image is one.image
    assert steps == [(0, 2)]


async def test_a_commit_of_a_broker_cut_off_waits() -> None:
    metadata = MemoryMetadata()
    one, two = metadata.attach(), metadata.attach()
    two.pause()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(two.commit, [topic("a")])
        await wait_all_tasks_blocked()
        assert one.image.topic("a") is None
        await two.resume()
    assert one.image.topic("a") is not None


async def test_an_injected_fault_fails_one_commit() -> None:
    metadata = MemoryMetadata()
    store = metadata.attach()
    metadata.fail_next = OSError(28, "No space left on device")
    with pytest.raises(KafkaError) as error:
        await store.commit([topic("a")])
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert store.image.version == 0
    await store.commit([topic("a")])
    assert store.image.topic("a") is not None
