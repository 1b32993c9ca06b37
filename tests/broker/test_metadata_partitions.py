"""The partitions of large topics are encoded once, and anew when what they tell has changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kwire.broker import metadata_partitions
from kwire.broker.metadata_partitions import LARGE, MetadataPartitions
from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from kwire.ports.clock import SystemClock
from kwire.ports.turns import Turn
from kwire.protocol import codec
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

LISTENER = "PLAINTEXT"
VERSIONS = range(MetadataResponse.min_version, MetadataResponse.max_version + 1)
BROKERS = {
    1: BrokerImage(1, 1, (Endpoint(LISTENER, "one", 9092, "PLAINTEXT"), Endpoint("INSIDE", "one", 9093, "PLAINTEXT"))),
    2: BrokerImage(2, 1, (Endpoint("INSIDE", "two", 9093, "PLAINTEXT"),)),
    3: BrokerImage(3, 1, (Endpoint(LISTENER, "three", 9092, "PLAINTEXT"),), fenced=True),
}


def topic(name: str, count: int, **state: object) -> TopicImage:
    fields = {"replicas": (1, 3), "isr": (1,), "leader": 1, "leader_epoch": 5} | state
    return TopicImage(name, name.encode().ljust(16), (PartitionImage(**fields),) * count)


def image_of(*topics: TopicImage) -> MetadataImage:
    return MetadataImage(version=1, brokers=BROKERS, topics={each.name: each for each in topics})


def encoded(partitions, version: int) -> bytes:
    return codec.encode(MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)]), version)


def told(keeper: MetadataPartitions, image: MetadataImage, listener: str = LISTENER, version: int = 12):
    """What a client decodes of topic t."""
    answer = encoded(keeper.of(image, image.topics["t"], listener, version), version)
    return codec.decode(MetadataResponse, version, answer).topics[0].partitions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("listener", [LISTENER, "INSIDE"])
@pytest.mark.parametrize("leader", [1, 2, 3, -1])
def test_a_large_topic_is_told_as_a_small_one_is(version: int, listener: str, leader: int) -> None:
    keeper = MetadataPartitions()
    few = image_of(topic("t", 1, leader=leader))
    many = image_of(topic("t", LARGE, leader=leader))
    (expected,) = told(MetadataPartitions(), few, listener, version)
    for _ in range(2):
        found = told(keeper, many, listener, version)
        assert [partition.partition_index for partition in found] == list(range(LARGE))
        for partition in found:
            partition.partition_index = 0
            assert partition == expected


def test_listeners_and_versions_do_not_mix() -> None:
    keeper, image = MetadataPartitions(), image_of(topic("t", LARGE, leader=2, replicas=(2,), isr=(2,)))
    for _ in range(2):
        assert told(keeper, image, LISTENER, 5)[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert told(keeper, image, LISTENER, 6)[0].error_code == ErrorCode.LISTENER_NOT_FOUND
        assert told(keeper, image, "INSIDE", 6)[0].error_code == ErrorCode.NONE


def test_it_is_told_from_what_was_kept() -> None:
    keeper, image = MetadataPartitions(), image_of(topic("t", LARGE))
    first = keeper.of(image, image.topics["t"], LISTENER, 12)
    later = replace(image, version=2, topics={**image.topics, "other": topic("other", 1)})
    assert keeper.of(later, later.topics["t"], LISTENER, 12) is first


def test_what_changes_is_told_anew() -> None:
    keeper, image = MetadataPartitions(), image_of(topic("t", LARGE))
    assert told(keeper, image)[0].leader_epoch == 5
    elected = image_of(topic("t", LARGE, leader_epoch=6))
    assert told(keeper, elected)[0].leader_epoch == 6
    assert told(keeper, elected)[0].offline_replicas == [3]
    back = replace(elected, brokers={**BROKERS, 3: replace(BROKERS[3], fenced=False)})
    assert told(keeper, back)[0].offline_replicas == []
    grown = replace(back, topics={"t": topic("t", LARGE + 1)})
    assert len(told(keeper, grown)) == LARGE + 1


def test_no_more_is_kept_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_partitions, "MOST_KEPT", 3 * LARGE)
    keeper, image = MetadataPartitions(), image_of(*(topic(name, LARGE) for name in "tabc"))

    def kept(name: str):
        return keeper.of(image, image.topics[name], LISTENER, 12)

    first = [kept(name) for name in "tab"]
    assert all(kept(name) is before for name, before in zip("tab", first, strict=True))
    kept("c")
    assert kept("t") is not first[0]
    assert told(keeper, image)[0].leader_id == 1


def test_a_topic_that_changes_takes_no_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_partitions, "MOST_KEPT", 2 * LARGE)
    keeper, image = MetadataPartitions(), image_of(topic("other", LARGE))
    other = keeper.of(image, image.topics["other"], LISTENER, 12)
    for epoch in range(5):
        assert told(keeper, image_of(topic("t", LARGE, leader_epoch=epoch)))[0].leader_epoch == epoch
    assert keeper.of(image, image.topics["other"], LISTENER, 12) is other


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_encoded_in_turns_is_what_would_be_encoded_at_once(version: int) -> None:
    image = image_of(topic("t", 1234))
    at_once = encoded(MetadataPartitions().of(image, image.topics["t"], LISTENER, version), version)
    partitions = MetadataPartitions().of(image, image.topics["t"], LISTENER, version)
    answer = MetadataResponseTopic(name="t", partitions=partitions)
    await metadata_partitions.encode_in_turns(answer, version, Turn(SystemClock()))
    assert len(partitions.encoded[version]) > 1234
    assert encoded(partitions, version) == at_once
