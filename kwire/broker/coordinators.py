"""The coordinators of this broker and the internal topics in which they keep their state.

The state machines are imported when a partition of their topic is first led, which keeps the start short.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from kwire.broker.transactions import Transactions
from kwire.cluster.internal_topics import COORDINATORS_TOPICS
from kwire.coordinator.caller import Caller
from kwire.coordinator.runtime.coordinator import Coordinator, partition_of
from kwire.coordinator.runtime.shard import Shard
from kwire.metadata.features import group_version
from kwire.metadata.image import BrokerImage, MetadataImage, TopicImage
from kwire.metadata.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.compression import Compression

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.coordinator.groups.machine import GroupMachine
    from kwire.coordinator.runtime.log import CoordinatorLog
    from kwire.coordinator.runtime.outcome import Now, Outcome

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Coordinators:
    """Who coordinates what. `run` lives as long as the broker."""

    def __init__(self, broker: Broker) -> None:
        self.groups: Coordinator[GroupMachine] = Coordinator("group", self._group_shard)
        self.transactions = Transactions(broker)
        self._by_topic: dict[str, Coordinator[Any]] = {
            CONSUMER_OFFSETS: self.groups,
            TRANSACTION_STATE: self.transactions.coordinator,
        }
        self.going: dict[str, bytes] = {}
        """Topics (ids by name) that the newest image may still show, though what was committed for them is going."""
        self._broker = broker

    @property
    def have_consumer_protocol(self) -> bool:
        """Whether groups may use it: by the level of group.version, and by this broker's configuration."""
        broker = self._broker
        offered = broker.config["group.coordinator.rebalance.protocols"]
        return group_version(broker.store.image) >= 1 and "consumer" in offered

    async def run(self) -> None:
        """Follows the leadership of the internal topics' partitions and runs deadlines, until cancelled."""
        broker = self._broker
        self.follow(broker.store.image)
        for topic, coordinator in self._by_topic.items():
            broker.replicas.listen(topic, coordinator)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.groups.run)
            nursery.start_soon(self.transactions.run)

    def follow(self, image: MetadataImage) -> None:
        """Takes over how many partitions the internal topics have."""
        for name, coordinator in self._by_topic.items():
            topic = image.topics.get(name)
            coordinator.partitions = 0 if topic is None else len(topic.partitions)

    async def forget(self, before: MetadataImage, after: MetadataImage) -> None:
        """Drops what groups have committed for topics that were deleted."""
        self.going = {}
        if after.topics is before.topics:
            return
        gone = {name: topic.id for name, topic in before.topics.items() if _is_gone(topic, after)}
        if not gone:
            return
        self.going = gone  # else what is committed for them meanwhile would stay
        from kwire.coordinator.groups.offsets.delete import forget_topics

        async def forget_in(shard: Shard[GroupMachine]) -> None:
            try:
                while await shard.write(lambda machine, now: forget_topics(machine, gone)):
                    pass
            except KafkaError as error:
                logger.warning("offsets of deleted topics could not be removed log=%r error=%s", shard.log, error)

        # Side by side, since each may wait for its followers.
        async with trio.open_nursery() as nursery:
            for shard in list(self.groups.shards.values()):
                if shard.active:
                    nursery.start_soon(forget_in, shard)

    async def write(self, group_id: str, operation: Callable[[GroupMachine, Now], Outcome[T]]) -> T:
        """The response of an operation on a group. Raises what `Shard.write` raises, as clients of groups are told."""
        from kwire.coordinator.groups.errors import as_group_error

        try:
            return await self.groups.shard_of(group_id).write(operation)
        except KafkaError as error:
            raise as_group_error(error) from error

    async def find(self, topic: str, key: str) -> BrokerImage:
        """The broker that coordinates a group (topic CONSUMER_OFFSETS) or a transactional id (TRANSACTION_STATE).

        Creates the internal topic where it does not exist. Raises COORDINATOR_NOT_AVAILABLE.
        """
        store = self._broker.store
        if topic not in store.image.topics:
            try:
                await self._broker.controller.create_internal_topic(COORDINATORS_TOPICS[topic])
            except KafkaError as error:
                raise KafkaError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} can't be created: {error.message}"
                ) from None
        image = store.image
        found = image.topics.get(topic)
        if found is not None:
            broker = image.brokers.get(found.partitions[partition_of(key, len(found.partitions))].leader)
            if broker is not None and not broker.fenced:
                return broker
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _group_shard(self, index: int, log: CoordinatorLog) -> Shard[GroupMachine]:
        from kwire.coordinator.groups.machine import GroupMachine
        from kwire.coordinator.records import TopicRecords
        from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES

        broker = self._broker
        machine = GroupMachine(lambda: broker.config, lambda: broker.store.image, broker.randomness)
        config = broker.config
        return Shard(
            log,
            machine,
            TopicRecords(GROUP_RECORD_TYPES),
            broker.clock,
            write_timeout_s=config["offsets.commit.timeout.ms"] / 1000,
            load_bytes=config["offsets.load.buffer.size"],
            compression=Compression(config["offsets.topic.compression.codec"]),
        )


def _is_gone(topic: TopicImage, image: MetadataImage) -> bool:
    """Whether the topic was deleted, though another of its name may be there."""
    present = image.topics.get(topic.name)
    return present is not topic and (present is None or present.id != topic.id)


def caller(context: RequestContext) -> Caller:
    """Who asks, as coordinators and Kafka's tools see it."""
    return Caller(context.client_id or "", f"/{context.session.client_host}", context.api_version)
