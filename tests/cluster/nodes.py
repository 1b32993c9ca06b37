"""Brokers for tests: a ReplicaManager with logs in memory on a small stand-in for the server, many in one process.

cluster = Cluster(nursery)
await cluster.start(1, 2)
await cluster.create("t", replicas=(1, 2))
await cluster[1].produce("t", b"a", b"b")
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import trio

from kwire.client.frames import FrameReader
from kwire.cluster.partition import ALL, Appended, Partition
from kwire.cluster.replica import Bound
from kwire.cluster.replicas import ReplicaManager
from kwire.cluster.stores.memory import MemoryMetadata
from kwire.cluster.waiting import ReplicationWait
from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.metadata.changes import BrokerRegistered, ConfigsChanged, PartitionChanged, TopicCreated
from kwire.metadata.image import BrokerImage, Endpoint, PartitionImage, TopicImage
from kwire.ports.clock import TrioClock
from kwire.ports.executor import InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.randomness import SeededRandomness
from kwire.ports.transport import Stream, StreamClosed
from kwire.protocol import codec, headers
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kwire.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.manager import LogManager
from tests.records import simple_records

from .images import topic_id, with_leader

PORT = 9092


class Node:
    """One broker."""

    def __init__(self, cluster: Cluster, broker_id: int, files: MemoryFileSystem, **settings: str) -> None:
        self.id = broker_id
        self.clock = TrioClock()
        self.files = files
        self.transport = cluster.network.transport(f"broker-{broker_id}")
        self.store = cluster.metadata.attach()
        names = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig({"node.id": str(broker_id), "log.dirs": "/a,/b", **names})
        self.logs = LogManager(files, InlineExecutor(), self.clock, SeededRandomness(broker_id), self.config)
        self.replicas = ReplicaManager(self.config, self.store, self.logs, self.clock, self.transport)
        self.fetches: list[FetchRequest] = []
        """What this broker was asked as a leader."""
        self.answer: dict[tuple[bytes, int], ErrorCode] = {}
        """Errors to answer fetches of a partition with, once each."""
        self.mute = False
        """Answers no fetch any more."""
        self._life = trio.CancelScope()

    async def start(self, nursery: trio.Nursery) -> None:
        await self.logs.lock()
        image = self.store.image
        await self.logs.load("cluster", self.id, lambda topic: LogConfig.of(self.config, image.config("topic", topic)))
        await self.replicas.start(image)
        self.store.subscribe(self.replicas.apply)
        listener = await self.transport.listen("", PORT)
        nursery.start_soon(self._live, listener)

    async def _live(self, listener) -> None:
        with self._life:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.replicas.run)
                nursery.start_soon(listener.serve, self._serve)
        listener.close()

    async def stop(self) -> None:
        self._life.cancel()
        await trio.testing.wait_all_tasks_blocked()
        await self.logs.close(self.store.image.brokers[self.id].epoch)
        self.logs.unlock()
        await self.store.close()

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        return self.replicas.partition(topic, index)

    async def append(self, *values: bytes, topic: str = "t", acks: int = 1) -> Appended:
        batch = build_batch(simple_records([(None, value) for value in values], self.clock.wall_ms()))
        return await self.partition(topic).append(batch, acks)

    async def produce(self, *values: bytes, topic: str = "t", timeout_s: float = 5) -> ErrorCode:
        """With acks=all."""
        appended = await self.append(*values, topic=topic, acks=ALL)
        (code,) = await ReplicationWait([(self.partition(topic), appended)]).finish(timeout_s)
        return code

    def records(self, topic: str = "t") -> list[tuple[int, bytes]]:
        """(leader epoch, value) of all records in the log."""
        log = self.partition(topic).log
        found = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            part = log.read(offset, 1 << 20).slice
            for header, batch in iter_batches(part.read()):
                found += [(header.leader_epoch, record.value) for record in iter_records(batch)]
                offset = header.next_offset
        return found

    def values(self, topic: str = "t") -> list[bytes]:
        return [value for _, value in self.records(topic)]

    # A server that knows three requests and no sessions

    async def _serve(self, stream: Stream) -> None:
        frames = FrameReader(stream, 1 << 20)
        try:
            while True:
                frame = await frames.read()
                header, body = headers.decode_request_header(frame)
                request, handle = {
                    ApiVersionsRequest.api_key: (ApiVersionsRequest, self._api_versions),
                    FetchRequest.api_key: (FetchRequest, self._fetch),
                    ListOffsetsRequest.api_key: (ListOffsetsRequest, self._list_offsets),
                }[header.api_key]
                version = header.api_version
                response = await handle(codec.decode(request, version, frame[body:]))
                data = headers.response_header(header.api_key, version, header.correlation_id)
                data += codec.encode(response, version)
                await stream.send([len(data).to_bytes(4, "big"), data])
        except StreamClosed:
            pass

    async def _api_versions(self, request: ApiVersionsRequest) -> ApiVersionsResponse:
        known = (ApiVersionsRequest, FetchRequest, ListOffsetsRequest)
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=api.api_key, min_version=api.min_version, max_version=api.max_version)
                for api in known
            ]
        )

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        self.fetches.append(request)
        if self.mute:
            await trio.sleep_forever()
        response = await self._read(request, record=True)
        waiter = Wakeup()
        watched = self._asked(request)
        for partition in watched:
            partition.watch(waiter)
        with trio.move_on_after(request.max_wait_ms / 1000):
            while not any(data.records or data.error_code for topic in response.responses for data in topic.partitions):
                await waiter.woken.wait()
                waiter.woken = trio.Event()
                response = await self._read(request, record=False)
        for partition in watched:
            partition.unwatch(waiter)
        return response

    def _partition_by_id(self, topic_id: bytes, index: int) -> Partition:
        name = self.store.image.topic_names.get(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.replicas.partition(name, index)

    def _asked(self, request: FetchRequest) -> list[Partition]:
        found = []
        for topic in request.topics:
            for asked in topic.partitions:
                with suppress(KafkaError):
                    found.append(self._partition_by_id(topic.topic_id, asked.partition))
        return found

    async def _read(self, request: FetchRequest, record: bool) -> FetchResponse:
        response = FetchResponse()
        for topic in request.topics:
            told = FetchableTopicResponse(topic_id=topic.topic_id)
            response.responses.append(told)
            for asked in topic.partitions:
                data = PartitionData(partition_index=asked.partition, high_watermark=-1, records=b"")
                told.partitions.append(data)
                try:
                    code = self.answer.pop((topic.topic_id, asked.partition), None)
                    if code is not None:
                        raise KafkaError(code)
                    partition = self._partition_by_id(topic.topic_id, asked.partition)
                    read = await partition.fetch_for_follower(
                        request.replica_state.replica_id,
                        asked.fetch_offset,
                        asked.partition_max_bytes,
                        current_leader_epoch=asked.current_leader_epoch,
                        last_fetched_epoch=asked.last_fetched_epoch,
                        log_start_offset=asked.log_start_offset,
                        broker_epoch=request.replica_state.replica_epoch,
                        min_one=True,
                        record=record,
                    )
                except KafkaError as error:
                    data.error_code = error.code
                    continue
                data.high_watermark = read.high_watermark
                data.log_start_offset = read.log_start_offset
                if read.diverging is not None:
                    data.diverging_epoch = EpochEndOffset(
                        epoch=read.diverging.epoch, end_offset=read.diverging.end_offset
                    )
                if read.slice is not None:
                    data.records = read.slice.read()
        return response

    async def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        (asked,) = topic.partitions
        told = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
        try:
            found = await self.partition(topic.name, asked.partition_index).list_offset(
                asked.timestamp, Bound.LOG_END, current_leader_epoch=asked.current_leader_epoch
            )
            told.timestamp, told.offset, told.leader_epoch = found
        except KafkaError as error:
            told.error_code = error.code
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[told])])


class Wakeup:
    def __init__(self) -> None:
        self.woken = trio.Event()
        self.count = 0

    def wake(self, partition: Partition) -> None:
        self.count += 1
        self.woken.set()


class Cluster:
    """Brokers that share metadata and a network."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.metadata = MemoryMetadata("cluster")
        self.network = MemoryNetwork()
        self.nodes: dict[int, Node] = {}
        self._nursery = nursery
        self._control = self.metadata.attach()

    def __getitem__(self, broker_id: int) -> Node:
        return self.nodes[broker_id]

    @property
    def image(self):
        return self._control.image

    async def start(self, *brokers: int, files: MemoryFileSystem | None = None, **settings: str) -> None:
        for broker in brokers:
            node = self.nodes[broker] = Node(self, broker, files or MemoryFileSystem(TrioClock()), **settings)
            await node.start(self._nursery)
            known = self.image.brokers.get(broker)
            epoch = 1 if known is None else known.epoch + 1
            endpoint = Endpoint("PLAINTEXT", f"broker-{broker}", PORT, "PLAINTEXT")
            await self.commit(BrokerRegistered(BrokerImage(broker, epoch, (endpoint,))))

    async def restart(self, broker: int, **settings: str) -> None:
        node = self.nodes[broker]
        await node.stop()
        await self.start(broker, files=node.files, **settings)

    async def commit(self, *changes) -> None:
        await self._control.commit(changes)

    async def fence(self, broker: int, fenced: bool = True) -> None:
        await self.commit(BrokerRegistered(replace(self.image.brokers[broker], fenced=fenced)))

    async def create(self, name: str = "t", replicas=(1, 2), isr=None, partitions: int = 1, **configs: str) -> None:
        state = PartitionImage(tuple(replicas), tuple(isr or replicas), replicas[0], 0, 0)
        overrides = {key.replace("_", "."): value for key, value in configs.items()}
        await self.commit(TopicCreated(TopicImage(name, topic_id(name), (state,) * partitions), overrides))

    async def configure(self, topic: str, **configs: str) -> None:
        await self.commit(
            ConfigsChanged("topic", topic, {key.replace("_", "."): value for key, value in configs.items()})
        )

    def state(self, topic: str = "t", index: int = 0) -> PartitionImage:
        return self.image.partition(topic, index)

    async def elect(self, leader: int, topic: str = "t", isr=None) -> None:
        """Makes `leader` the leader in a new epoch, with this ISR (as it is by default)."""
        await self.commit(PartitionChanged(topic, 0, with_leader(self.state(topic), leader, isr)))
