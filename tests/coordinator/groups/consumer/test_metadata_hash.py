"""The hash of a group's topics: XXH3 as others compute it, and Kafka's bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.groups.consumer.metadata_hash import TopicHashes, topic_hash
from kwire.coordinator.groups.consumer.xxh3 import xxh3_64
from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from tests.coordinator.groups.consumer.support import with_topics

BROKERS = {1: BrokerImage(1, 1, (), "a"), 2: BrokerImage(2, 1, (), "bb"), 3: BrokerImage(3, 1, ())}
TOPIC = TopicImage("topic", bytes(range(16)), (PartitionImage((2, 1), (1,), 1), PartitionImage((3,), (3,), 3)))


@pytest.mark.parametrize("size", [*range(260), 1024, 1025, 1088, 5000])
def test_xxh3_at_every_size(size: int) -> None:
    data = bytes(number * 7 & 0xFF for number in range(size))
    assert xxh3_64(data) == xxhash.xxh3_64_intdigest(data)


@given(st.binary(max_size=3000))
def test_xxh3(data: bytes) -> None:
    assert xxh3_64(data) == xxhash.xxh3_64_intdigest(data)


def test_a_topic_hashes_as_in_apache_kafka() -> None:
    # Of org.apache.kafka.coordinator.group.Utils.computeTopicHash for this topic.
    assert topic_hash(TOPIC, BROKERS) == -5242980694255111204


def test_no_topics_are_0() -> None:
    assert TopicHashes().of_group([], MetadataImage()) == 0
    assert TopicHashes().of_group(["missing"], MetadataImage()) == 0


def test_what_changes_the_hash() -> None:
    hashes = TopicHashes()
    image = with_topics(MetadataImage(), {"t": 1, "u": 1})
    first = hashes.of_group(["t"], image)
    assert hashes.of_group(["t", "missing"], image) == first
    assert hashes.of_group(["t", "u"], image) == hashes.of_group(["u", "t"], image) != first
    assert hashes.of_group(["t"], with_topics(image, {"t": 2})) != first
    assert hashes.of_group(["t"], with_topics(image, {"other": 1})) == first
    moved = replace(image, brokers={1: BrokerImage(1, 1, (), "rack")})
    assert hashes.of_group(["t"], moved) != first
