"""A broker with tiered storage, in memory, and what its tests ask of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from kwire.ports.clock import TrioClock
from kwire.ports.files import Buffer
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.remote.faults import Faults
from kwire.remote.memory import MemoryObjectStore
from tests.broker.scene import Scene, running

_TOPIC = 2
"""Among the kinds of resources."""

SWITCHED_OFF = {"remote_storage_enable": "false", "remote_log_delete_on_disable": "true"}
"""What deletes a topic's copies."""

SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "rsm.config.storage.backend.class": "directory",
    "rsm.config.storage.root": "not used",
    "rsm.config.chunk.size": "65536",
    "log.retention.check.interval.ms": "1000",
    "remote.log.manager.task.interval.ms": "1000",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "log.index.interval.bytes": "500",
}
"""Of the broker."""

TIERED = {
    "remote_storage_enable": "true",
    "internal_segment_bytes": "2000",
    "local_retention_bytes": "2000",
    "file_delete_delay_ms": "0",
}
"""Of a topic: a segment has a few batches, and here stays little more than the active one."""


class TieredPlace:
    """Files and objects that outlive their brokers."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.files = MemoryFileSystem()
        self.objects = MemoryObjectStore(TrioClock(), faults)

    @asynccontextmanager
    async def broker(self, **settings: str) -> AsyncIterator[Scene]:
        """A broker on them. `settings`: config names with '_' for '.'."""
        more = {name.replace("_", "."): value for name, value in settings.items()}
        async with running({**SETTINGS, **more}, files=self.files, objects=self.objects) as scene:
            yield scene

    async def keys(self, prefix: str = "") -> list[str]:
        """Of all objects."""
        return sorted([found.key async for found in self.objects.list(prefix)])

    def logs(self, keys: list[str]) -> list[str]:
        """The keys of segments among them."""
        return [key for key in keys if key.endswith(".log")]


async def until(condition: Callable[[], bool], within_s: float = 120) -> None:
    """Waits on the mock clock."""
    deadline = trio.current_time() + within_s
    while not condition():
        assert trio.current_time() < deadline, "it did not come to be"
        await trio.sleep(0.1)


async def fill(scene: Scene, topic: str, batches: int, *, size: int = 100, **batch: Any) -> list[bytes]:
    """Produces batches of 3 records each; returns the values in order."""
    values: list[bytes] = []
    for _ in range(batches):
        some = [f"{len(values) + number:08d}".encode() * (size // 8) for number in range(3)]
        assert (await scene.produce(topic, *some, **batch)).error_code == 0
        values += some
    return values


async def configure(scene: Scene, topic: str, **configs: str) -> None:
    """Sets configs of a topic (their names with '_' for '.')."""
    asked = [AlterableConfig(name=name.replace("_", "."), config_operation=0, value=configs[name]) for name in configs]
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=asked)
    response = await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == 0, response


async def fetch(
    scene: Scene, topic: str, offset: int, *, max_bytes: int = 1 << 20, isolation: int = 0, max_wait_ms: int = 0
) -> PartitionData:
    response = await scene.call(
        FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            isolation_level=isolation,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)],
                )
            ],
        ),
        12,
    )
    return response.responses[0].partitions[0]


def records(data: Buffer | None) -> list[tuple[int, bytes]]:
    """(offset, value) of whole batches of records."""
    return [
        (record.offset, bytes(record.value or b""))
        for header, batch in iter_batches(data or b"")
        if not header.control
        for record in iter_records(batch)
    ]


async def read_all(
    scene: Scene, topic: str, offset: int = 0, *, max_bytes: int = 1 << 20, isolation: int = 0
) -> list[tuple[int, bytes]]:
    """(offset, value) of all records from `offset` on, fetched as a consumer does."""
    found: list[tuple[int, bytes]] = []
    while True:
        data = await fetch(scene, topic, offset, max_bytes=max_bytes, isolation=isolation)
        assert data.error_code == 0, data
        batches = list(iter_batches(data.records or b""))
        if batches:
            found += [one for one in records(data.records) if one[0] >= offset]
            offset = batches[-1][0].next_offset
        elif offset >= data.high_watermark:
            return found


async def list_offset(scene: Scene, topic: str, timestamp: int) -> ListOffsetsPartitionResponse:
    response = await scene.call(
        ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
            ]
        )
    )
    return response.topics[0].partitions[0]
