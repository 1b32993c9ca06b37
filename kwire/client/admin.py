"""Managing a cluster: topics and configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.metadata import Topic, check
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from kwire.client.client import Client

TIMEOUT = 30.0
"""Seconds that the cluster may take for a change."""

BROKER_DEFAULT = -1
"""Partitions or replicas of a new topic: as the broker is configured (since Kafka 2.4)."""

_TIMEOUT_MS = int(TIMEOUT * 1000)
_FIRST_VERSION_WITH_BROKER_DEFAULT = 4
_FIRST_VERSION_WITH_TOPIC_STATES = 6


class ResourceType(IntEnum):
    """What a config belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigEntry(NamedTuple):
    """One config of a resource. The value of a sensitive one is not told (None)."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool


class Admin:
    """Each method raises KafkaError, with the broker's own message, where the cluster refuses, else ClientError."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def topics(self) -> dict[str, Topic]:
        """All topics by name, in order."""
        await self._client.retrying(lambda: self._client.refresh(None))
        return dict(sorted(self._client.metadata.topics.items()))

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        assignment: Sequence[Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Creates a topic. `assignment` names the replicas of each partition and excludes the two numbers."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1 if assignment else partitions,
            replication_factor=-1 if assignment else replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                for index, brokers in enumerate(assignment or ())
            ],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=validate_only)

        async def create() -> None:
            if not assignment and BROKER_DEFAULT in (partitions, replication_factor):
                (await self._client.any_connection()).require(CreateTopicsRequest, _FIRST_VERSION_WITH_BROKER_DEFAULT)
            response = await self._client.call_controller(request, timeout=self._client.request_timeout + TIMEOUT)
            for result in response.topics:
                check(result.error_code, result.error_message or f"topic {result.name!r}")

        await self._client.retrying(create)

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Deletes topics. Raises for the first that could not be; the others are deleted all the same."""

        async def delete() -> None:
            connection = await self._client.any_connection()
            if connection.version(DeleteTopicsRequest) >= _FIRST_VERSION_WITH_TOPIC_STATES:
                request = DeleteTopicsRequest(
                    topics=[DeleteTopicState(name=name) for name in names], timeout_ms=_TIMEOUT_MS
                )
            else:
                request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=_TIMEOUT_MS)
            response = await self._client.call_controller(request, timeout=self._client.request_timeout + TIMEOUT)
            for result in response.responses:
                check(result.error_code, ": ".join(filter(None, [f"topic {result.name!r}", result.error_message])))

        await self._client.retrying(delete, unknown_topic_grace=0)
        for name in names:
            self._client.metadata.topics.pop(name, None)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Adds partitions to a topic until it has `count`."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)], timeout_ms=_TIMEOUT_MS
        )

        async def create() -> None:
            response = await self._client.call_controller(request, timeout=self._client.request_timeout + TIMEOUT)
            for result in response.results:
                check(result.error_code, result.error_message or f"topic {result.name!r}")

        await self._client.retrying(create, unknown_topic_grace=0)

    async def describe_configs(self, kind: ResourceType, name: str) -> list[ConfigEntry]:
        """All configs of a topic or of a broker (its id as text), in order."""
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )

        async def describe() -> list[ConfigEntry]:
            response = await self._client.call(request, broker=await self._broker_for(kind, name))
            entries = []
            for result in response.results:
                check(result.error_code, result.error_message or f"{kind.name.lower()} {name!r}")
                for config in result.configs:
                    try:
                        source = ConfigSource(config.config_source)
                    except ValueError:
                        source = ConfigSource.UNKNOWN
                    entries.append(
                        ConfigEntry(config.name, config.value, source, config.read_only, config.is_sensitive)
                    )
            return sorted(entries)

        return await self._client.retrying(describe, unknown_topic_grace=0)

    async def alter_configs(
        self, kind: ResourceType, name: str, *, set: Mapping[str, str] | None = None, delete: Sequence[str] = ()
    ) -> None:
        """Sets configs of a resource, and gives others their default back; the rest stays (since Kafka 2.3)."""
        changes = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in (set or {}).items()]
        changes += [AlterableConfig(name=key, config_operation=1, value=None) for key in delete]
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)]
        )

        async def alter() -> None:
            broker = await self._broker_for(kind, name)
            response = await (
                self._client.call_controller(request) if broker is None else self._client.call(request, broker=broker)
            )
            for result in response.responses:
                check(result.error_code, result.error_message or f"{kind.name.lower()} {name!r}")

        await self._client.retrying(alter, unknown_topic_grace=0)

    async def _broker_for(self, kind: ResourceType, name: str) -> int | None:
        """The broker that alone can tell of a resource: a broker tells of itself."""
        if kind is not ResourceType.BROKER or not name:
            return None
        if not self._client.metadata.brokers:
            await self._client.refresh()
        broker = next((broker for broker in self._client.metadata.brokers if str(broker) == name), None)
        if broker is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cluster has no broker {name!r}")
        return broker
