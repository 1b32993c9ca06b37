"""A broker in memory, on virtual time, and a client of it: for tests of the server without a socket or a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import trio

from kwire.broker.broker import Broker
from kwire.client.connection import Connection
from kwire.config.broker import BrokerConfig
from kwire.metadata.changes import BrokerRegistered, PartitionChanged
from kwire.metadata.image import BrokerImage, Endpoint
from kwire.ports.bundle import Ports
from kwire.ports.clock import TrioClock
from kwire.ports.executor import InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.randomness import SeededRandomness
from kwire.ports.workers import LocalWorkers
from kwire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kwire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message
from kwire.remote.object_store import ObjectStore
from kwire.security.authorizer import Authorizer, Operation, ResourceType
from kwire.storage.log import Log

HOST = "broker"
PORT = 9092
NEIGHBOUR = BrokerImage(2, 1, (Endpoint("PLAINTEXT", "neighbour", 9093, "PLAINTEXT"),), "rack")
"""A broker that the metadata may know, though nobody answers there."""


class Only:
    """Lets everybody do these operations and no others, on resources of these names if any are given."""

    def __init__(self, *operations: Operation, names: Collection[str] | None = None) -> None:
        self._operations = operations
        self._names = names

    def allows(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return operation in self._operations and (self._names is None or name in self._names)


@dataclass
class Scene:
    """The broker and an open connection to it."""

    broker: Broker
    network: MemoryNetwork
    files: MemoryFileSystem
    connection: Connection

    async def call(self, request: Message, version: int | None = None) -> Any:
        """The response to a request, at its newest version unless another is asked for."""
        return await self.connection.call(request, version)

    async def another_connection(self) -> Connection:
        return await Connection.open(self.network.transport("client"), HOST, PORT)

    async def allow(self, *operations: Operation, names: Collection[str] | None = None) -> None:
        """From now on this client may do these operations only, on resources of these names if any are given."""
        self.broker.authorizer = Only(*operations, names=names)
        self.connection.close()
        self.connection = await self.another_connection()

    async def create(self, topic: str, partitions: int = 1, **configs: str) -> bytes:
        """Creates a topic (config names with '_' for '.'); returns its id."""
        response = await self.call(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=topic,
                        num_partitions=partitions,
                        replication_factor=1,
                        configs=[
                            CreatableTopicConfig(name=name.replace("_", "."), value=value)
                            for name, value in configs.items()
                        ],
                    )
                ]
            )
        )
        assert response.topics[0].error_code == 0, response
        return response.topics[0].topic_id

    def id_of(self, topic: str) -> bytes:
        return self.broker.store.image.topics[topic].id

    def log(self, topic: str, partition: int = 0) -> Log:
        log = self.broker.logs.get(topic, partition)
        assert log is not None
        return log

    async def place(self, topic: str, *replicas: int, in_sync: Sequence[int] | None = None, partition: int = 0) -> None:
        """Begins a leader epoch of the partition: these brokers have it, all in sync if not told, the first one leads.

        1 is the broker of the scene, 2 its NEIGHBOUR, registered from now on.
        """
        state = self.broker.store.image.topics[topic].partitions[partition]
        placed = replace(
            state,
            replicas=replicas,
            isr=replicas if in_sync is None else tuple(in_sync),
            leader=replicas[0],
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
        await self.broker.store.commit([BrokerRegistered(NEIGHBOUR), PartitionChanged(topic, partition, placed)])

    async def produce(self, topic: str, *values: bytes, partition: int = 0, **batch: Any) -> PartitionProduceResponse:
        """Appends one batch of records with these values."""
        now = self.broker.clock.wall_ms()
        records = [Record(offset, now, None, value, []) for offset, value in enumerate(values)]
        return await self.produce_blob(topic, build_batch(records, **batch), partition)

    async def produce_blob(
        self,
        topic: str,
        blob: bytes,
        partition: int = 0,
        acks: int = -1,
        version: int = 12,
        transactional_id: str | None = None,
    ) -> PartitionProduceResponse:
        response = await self.call(
            ProduceRequest(
                transactional_id=transactional_id,
                acks=acks,
                timeout_ms=1000,
                topic_data=[
                    TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=blob)])
                ],
            ),
            version,
        )
        return response.responses[0].partition_responses[0]


def memory_ports(network: MemoryNetwork, files: MemoryFileSystem, host: str = HOST, seed: int = 7) -> Ports:
    return Ports(
        clock=TrioClock(),
        randomness=SeededRandomness(seed),
        executor=InlineExecutor(),
        workers=LocalWorkers(InlineExecutor()),
        transport=network.transport(host),
        files=files,
        host_name=lambda: host,
    )


@asynccontextmanager
async def running(
    settings: Mapping[str, str] | None = None,
    *,
    files: MemoryFileSystem | None = None,
    authorizer: Authorizer | None = None,
    objects: ObjectStore | None = None,
    seed: int = 7,
) -> AsyncIterator[Scene]:
    """A broker that is started, connected to, and stopped at the end; on the same `files` it finds its data again.

    Lives with the same `seed` draw the same ids.
    """
    network = MemoryNetwork()
    files = files or MemoryFileSystem()
    config = BrokerConfig({"listeners": f"PLAINTEXT://{HOST}:{PORT}", "log.dirs": "data", **(settings or {})})
    broker = Broker(config, memory_ports(network, files, seed=seed), authorizer=authorizer, objects=objects)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        connection = await Connection.open(network.transport("client"), HOST, PORT)
        try:
            yield Scene(broker, network, files, connection)
        finally:
            connection.close()
            broker.stop(1.0)
