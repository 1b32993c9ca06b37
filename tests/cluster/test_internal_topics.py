"""The coordinators' topics are created once, with the configs that Apache Kafka gives them."""

from functools import partial

import pytest
import trio

from kwire.cluster.controller import Controller
from kwire.cluster.internal_topics import consumer_offsets, transaction_state
from kwire.cluster.stores.memory import MemoryMetadata
from kwire.config.broker import BrokerConfig
from kwire.config.topic import validate_topic_configs
from kwire.ports.randomness import SeededRandomness
from kwire.protocol.errors import ErrorCode, KafkaError

from .images import image


def controller(store) -> Controller:
    config = BrokerConfig({"node.id": "1", "log.dirs": "/a"})
    return Controller(store, lambda: config, partial(validate_topic_configs, config), SeededRandomness(1))


@pytest.mark.parametrize(
    ("topic", "name", "configs"),
    [
        (
            consumer_offsets,
            "__consumer_offsets",
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
        ),
        (
            transaction_state,
            "__transaction_state",
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": "1",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ),
    ],
)
async def test_created_once(topic, name, configs):
    store = MemoryMetadata(image=image(brokers=(1,))).attach()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(controller(store).create_internal_topic, topic)
    created = store.image.topics[name]
    assert [partition.replicas for partition in created.partitions] == [(1,)] * 50
    assert store.image.config("topic", name) == configs
    await controller(store).create_internal_topic(topic)
    assert store.image.topics[name] is created


async def test_of_a_crowd_that_needs_it_one_creates_it():
    class Counting(MemoryMetadata):
        async def commit(self, changes, expected_version):
            committed.append(changes)
            return await super().commit(changes, expected_version)

    committed = []
    store = Counting(image=image(brokers=(1,))).attach()
    one = controller(store)
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one.create_internal_topic, consumer_offsets)
    assert len(committed) == 1


async def test_what_keeps_it_from_being_is_told():
    store = MemoryMetadata(image=image(brokers=(1,), fenced=(1,))).attach()
    with pytest.raises(KafkaError) as raised:
        await controller(store).create_internal_topic(consumer_offsets)
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
