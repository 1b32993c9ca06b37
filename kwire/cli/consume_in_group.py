"""`kwire consume --group`: the records of what partitions the group leaves to this member.

What was printed is committed at once: a record is printed again only where this member is killed, or taken for gone by
its group, in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from kwire.cli.consume import unassign_finished
from kwire.cli.output import write_bytes
from kwire.cli.positions import END, Range, resolve_end
from kwire.client.consumer import Consumer
from kwire.client.errors import ClientError
from kwire.client.group_member import GroupMember
from kwire.client.group_offsets import committed_offsets
from kwire.client.groups import Groups
from kwire.client.offsets import EARLIEST, LATEST, list_offsets
from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.consumer import ConsumedRecord
    from kwire.client.offsets import Isolation
    from kwire.protocol.types import TopicPartition

LEAVING_TIMEOUT = 5.0
"""Seconds."""


async def consume_in_group(
    client: Client,
    group: str,
    topic: str,
    first: str,
    exit_at_end: bool,
    count: int | None,
    render: Callable[[ConsumedRecord], bytes],
    isolation: Isolation,
) -> None:
    """`first` is BEGINNING or END: where a partition begins for which the group has no offset that is there."""
    known = (await client.topic(topic)).partitions
    ends = await resolve_end(client, [(topic, number) for number in known], Range(), exit_at_end, isolation)
    groups = Groups(client)
    member = GroupMember(groups, group, [topic])
    consumer = Consumer(client, isolation=isolation)

    async def read() -> None:
        left = count
        while left != 0:
            if member.stale:
                partitions = await member.join()
                if ends is not None:  # a partition that has been added since then has nothing before its end
                    partitions = [partition for partition in partitions if partition in ends]
                await consumer.assign(await _positions(client, groups, group, partitions, first))
            unassign_finished(consumer, ends)
            if not consumer.positions:
                if exit_at_end:
                    return
                await member.until_stale()
                continue
            records = await consumer.poll()
            if member.stale:  # they may be another's by now
                continue
            if ends is not None:
                records = [record for record in records if record.offset < ends[record.topic, record.partition]]
            if left is not None:
                records = records[:left]
                left -= len(records)
            if records:
                write_bytes(b"".join(map(render, records)))
                await member.commit({(record.topic, record.partition): record.offset + 1 for record in records})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(member.heartbeat)
        try:
            await read()
        finally:
            with trio.move_on_after(LEAVING_TIMEOUT) as scope:
                scope.shield = True
                with suppress(KafkaError, ClientError):  # else the coordinator misses its heartbeats soon
                    await member.leave()
        nursery.cancel_scope.cancel()


async def _positions(
    client: Client, groups: Groups, group: str, partitions: Collection[TopicPartition], first: str
) -> dict[TopicPartition, int]:
    """The offset of each partition at which to go on."""
    if not partitions:
        return {}
    committed = await committed_offsets(groups, group)
    begins = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    positions = {}
    for partition in partitions:
        begin, end = begins[partition].offset, ends[partition].offset
        known = committed.get(partition)
        if known is not None and begin <= known.offset <= end:
            positions[partition] = known.offset
        else:
            positions[partition] = end if first == END else begin
    return positions
