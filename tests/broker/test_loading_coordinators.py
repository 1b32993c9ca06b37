"""What the coordinators kept is found again after a restart, in however small pieces it is read."""

from __future__ import annotations

from kwire.client.client import Client
from kwire.client.group_offsets import commit_offsets, committed_offsets
from kwire.client.groups import Groups
from kwire.ports.memory_files import MemoryFileSystem
from tests.broker.apis import transactions
from tests.broker.scene import HOST, PORT, Scene, running

FEW = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
BYTE_BY_BYTE = {"offsets.load.buffer.size": "1", "transaction.state.log.load.buffer.size": "1"}
COMMITS = 5
GROUPS = ("a", "b", "c")


def client_of(scene: Scene) -> Client:
    return Client(scene.network.transport("client"), [(HOST, PORT)])


async def test_offsets(autojump_clock) -> None:
    files = MemoryFileSystem()
    async with running(FEW, files=files) as scene, client_of(scene) as client:
        await scene.create("t")
        for offset in range(COMMITS):
            for group in GROUPS:
                await commit_offsets(Groups(client), group, {("t", 0): offset})
    async with running({**FEW, **BYTE_BY_BYTE}, files=files) as scene, client_of(scene) as client:
        for group in GROUPS:
            found = await committed_offsets(Groups(client), group)
            assert {partition: committed.offset for partition, committed in found.items()} == {("t", 0): COMMITS - 1}


async def test_transactions(autojump_clock) -> None:
    files = MemoryFileSystem()
    async with running(FEW, files=files) as scene:
        begun = {name: await transactions.begin(scene, name) for name in GROUPS}
    async with running({**FEW, **BYTE_BY_BYTE}, files=files) as scene:
        await transactions.led(scene)
        for name, producer in begun.items():
            state = await transactions.describe(scene, name)
            assert (state.producer_id, state.producer_epoch) == producer
