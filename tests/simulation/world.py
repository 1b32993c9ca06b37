"""Whole brokers in one process on virtual time: the real server, wire and logs; network, files and clock in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from kwire.broker.broker import Broker
from kwire.client.connection import Connection
from kwire.cluster.stores.memory import MemoryMetadata
from kwire.config.broker import BrokerConfig
from kwire.metadata.changes import PartitionChanged
from kwire.metadata.image import PartitionImage
from kwire.ports.bundle import Ports
from kwire.ports.clock import TrioClock
from kwire.ports.executor import InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.randomness import SeededRandomness
from kwire.ports.workers import LocalWorkers
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.log import Log
from tests.cluster.images import with_leader
from tests.records import simple_records

PORT = 9092


class World:
    """Brokers by id on a network; `host(id)` is where each lives. The caller is one client of them all."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.network = MemoryNetwork()
        self.metadata = MemoryMetadata("simulated-cluster-00000")
        self.brokers: dict[int, Broker] = {}
        self._nursery = nursery
        self._control = self.metadata.attach()
        self._connections: dict[int, Connection] = {}

    async def start(self, broker_id: int, **settings: str) -> None:
        """Starts a broker with these settings ('_' for '.')."""
        host = self.host(broker_id)
        ports = Ports(
            clock=TrioClock(),
            randomness=SeededRandomness(broker_id),
            executor=InlineExecutor(),
            workers=LocalWorkers(InlineExecutor()),
            transport=self.network.transport(host),
            files=MemoryFileSystem(TrioClock()),
            host_name=lambda: host,
        )
        config = {"node.id": str(broker_id), "listeners": f"PLAINTEXT://{host}:{PORT}", "log.dirs": "data"}
        config |= {name.replace("_", "."): value for name, value in settings.items()}
        broker = self.brokers[broker_id] = Broker(BrokerConfig(config), ports, store=self.metadata.attach())
        await self._nursery.start(broker.run)
        self._connections[broker_id] = await self.connect(broker_id)

    async def connect(self, broker_id: int) -> Connection:
        """One more connection of the client, for a request that waits."""
        return await Connection.open(self.network.transport("client"), self.host(broker_id), PORT)

    def stop(self) -> None:
        for connection in self._connections.values():
            connection.close()
        for broker in self.brokers.values():
            broker.stop(1.0)

    @staticmethod
    def host(broker_id: int) -> str:
        return f"broker-{broker_id}"

    def cut(self, one: int, other: int) -> None:
        self.network.cut(self.host(one), self.host(other))

    def heal(self, one: int, other: int) -> None:
        self.network.heal(self.host(one), self.host(other))

    # What a client does

    async def create(self, topic: str, replicas: Sequence[int], **configs: str) -> None:
        """A topic of one partition on these brokers, the first one its leader."""
        response = await self._connections[replicas[0]].call(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=topic,
                        num_partitions=-1,
                        replication_factor=-1,
                        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))],
                        configs=[
                            CreatableTopicConfig(name=name.replace("_", "."), value=value)
                            for name, value in configs.items()
                        ],
                    )
                ],
                timeout_ms=1000,
            )
        )
        assert response.topics[0].error_code == 0, response

    async def produce(
        self, broker: int, *values: bytes, topic: str = "t", acks: int = -1, timeout_ms: int = 5000
    ) -> ErrorCode:
        """Sends one batch; what the broker answered."""
        now = self.brokers[broker].clock.wall_ms()
        batch = build_batch(simple_records([(None, value) for value in values], now))
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
        response = await self._connections[broker].call(request, 12)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    async def fetch(
        self,
        broker: int,
        offset: int = 0,
        *,
        topic: str = "t",
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        replica_id: int = -1,
        max_wait_ms: int = 0,
        connection: Connection | None = None,
    ) -> PartitionData:
        """As a consumer, or as the follower `replica_id`, outside of any session."""
        asked = FetchPartition(
            partition=0,
            fetch_offset=offset,
            current_leader_epoch=current_leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(
            replica_id=replica_id,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        response = await (connection or self._connections[broker]).call(request, 12)
        assert response.error_code == 0
        return response.responses[0].partitions[0]

    async def consume(self, broker: int, topic: str = "t") -> list[bytes]:
        """All committed values."""
        values: list[bytes] = []
        offset = 0
        while data := await self.fetch(broker, offset, topic=topic):
            assert data.error_code == 0
            if not data.records:
                break
            for header, batch in iter_batches(data.records):
                values += [record.value or b"" for record in iter_records(batch)]
                offset = header.next_offset
        return values

    async def list_offset(self, broker: int, timestamp: int, *, current_leader_epoch: int = -1) -> Any:
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=current_leader_epoch)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
        return (await self._connections[broker].call(request)).topics[0].partitions[0]

    async def end_of_epoch(self, broker: int, epoch: int, *, current_leader_epoch: int = -1) -> Any:
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current_leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])])
        return (await self._connections[broker].call(request)).topics[0].partitions[0]

    # What a controller does

    def state(self, topic: str = "t") -> PartitionImage:
        return self._control.image.topics[topic].partitions[0]

    async def elect(self, leader: int, topic: str = "t", isr: Sequence[int] | None = None) -> None:
        """Makes that broker the leader in a new epoch; the ISR stays unless given."""
        elected = with_leader(self.state(topic), leader, None if isr is None else tuple(isr))
        await self._control.commit([PartitionChanged(topic, 0, elected)])

    # What nobody but a test sees

    def log(self, broker: int, topic: str = "t") -> Log:
        log = self.brokers[broker].logs.get(topic, 0)
        assert log is not None
        return log

    def records(self, broker: int, topic: str = "t") -> list[tuple[int, bytes]]:
        """(leader epoch, value) of everything in a broker's log, committed or not."""
        log = self.log(broker, topic)
        found = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            part = log.read(offset, 1 << 20).slice
            assert part is not None
            for header, batch in iter_batches(part.read()):
                found += [(header.leader_epoch, record.value or b"") for record in iter_records(batch)]
                offset = header.next_offset
        return found


@asynccontextmanager
async def world(*brokers: int, **settings: str) -> AsyncIterator[World]:
    """A world with these brokers running; they stop in order at the end."""
    async with trio.open_nursery() as nursery:
        made = World(nursery)
        for broker in brokers:
            await made.start(broker, **settings)
        try:
            yield made
        finally:
            made.stop()
