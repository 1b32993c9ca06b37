"""`kwire consume --group`: the records of what partitions the group leaves to this member.

What was printed is committed at once: a record is printed again only where this member is killed, or taken for gone by
its group, in between, or ended amid the piece of output that it is in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from signal import SIG_IGN, SIGHUP, SIGTERM, getsignal
from typing import TYPE_CHECKING, NamedTuple

import trio

from kwire.cli.consume import unassign_finished
from kwire.cli.output import write_patiently
from kwire.cli.positions import END, Range, resolve_end
from kwire.cli.running import CommandError
from kwire.client.consumer import Consumer
from kwire.client.errors import ClientError
from kwire.client.group_member import GroupMember
from kwire.client.group_offsets import committed_offsets
from kwire.client.groups import Groups
from kwire.client.offsets import EARLIEST, LATEST, list_offsets
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.consumer import ConsumedRecord
    from kwire.client.offsets import Isolation
    from kwire.protocol.types import TopicPartition

LEAVING_TIMEOUT = 5.0
"""Seconds."""

PIECE_BYTES = 64 * 1024
"""After so much it is seen whether the group rebalances."""


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
    stopped_by: list[int] = []

    async def begin(partitions: Collection[TopicPartition]) -> None:
        places = await _places(client, groups, group, partitions, first, isolation)
        await consumer.assign(places.positions)
        if places.new:  # else who comes later, or this one after a rebalance, would begin at another end
            await member.commit(places.new)

    async def read() -> None:
        left = count
        while left != 0:
            if member.stale:
                partitions = await member.join()
                if ends is not None:  # a partition that has been added since then has nothing before its end
                    partitions = [partition for partition in partitions if partition in ends]
                await begin(partitions)
            unassign_finished(consumer, ends)
            if not consumer.positions:
                if exit_at_end:
                    return
                await member.until_stale()
                continue
            before = dict(consumer.positions)
            try:
                records = await consumer.poll()
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                print(f"kwire: {error}: goes on at the {first}", file=sys.stderr)
                await begin(list(consumer.positions))
                continue
            if member.stale:  # they may be another's by now
                continue
            wanted = [
                record for record in records if ends is None or record.offset < ends[record.topic, record.partition]
            ]
            printed: list[ConsumedRecord] = []
            try:
                await _print(wanted[:left], member, render, printed)
            except BaseException:
                with trio.move_on_after(LEAVING_TIMEOUT) as scope, suppress(KafkaError, ClientError):
                    scope.shield = True  # why it ends is to be told, not that this failed
                    await member.commit(_reached(before, consumer.positions, records, printed))
                raise
            if left is not None:
                left -= len(printed)
            reached = _reached(before, consumer.positions, records, printed)
            if reached:
                await member.commit(reached)

    async def stop_at_signals() -> None:
        signals = [number for number in (SIGTERM, SIGHUP) if getsignal(number) is not SIG_IGN]
        if not signals:
            return
        with trio.open_signal_receiver(*signals) as received:
            async for number in received:
                stopped_by.append(number)
                nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(member.heartbeat)
        nursery.start_soon(stop_at_signals)
        try:
            await read()
        finally:
            with trio.move_on_after(LEAVING_TIMEOUT) as scope:
                scope.shield = True
                with suppress(KafkaError, ClientError):  # else the coordinator misses its heartbeats soon
                    await member.leave()
        nursery.cancel_scope.cancel()
    if stopped_by:
        raise CommandError("", 128 + stopped_by[0])


async def _print(
    records: Sequence[ConsumedRecord],
    member: GroupMember,
    render: Callable[[ConsumedRecord], bytes],
    printed: list[ConsumedRecord],
) -> None:
    """Adds to `printed` what was: not all where the group rebalances meanwhile, since nobody may read on soon."""
    piece, size = [], 0
    for number, record in enumerate(records, 1):
        piece.append(render(record))
        size += len(piece[-1])
        if size >= PIECE_BYTES or number == len(records):
            await write_patiently(b"".join(piece))
            printed += records[len(printed) : number]
            if member.stale:
                return
            piece, size = [], 0


def _reached(
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    records: Sequence[ConsumedRecord],
    printed: Sequence[ConsumedRecord],
) -> dict[TopicPartition, int]:
    """Where the group goes on in partitions that moved: behind all that was fetched, also where that was markers and
    what was aborted, or at the first record that was not printed."""
    reached = dict(after)
    out = {(record.topic, record.partition, record.offset) for record in printed}
    for record in reversed(records):
        if (record.topic, record.partition, record.offset) not in out:
            reached[record.topic, record.partition] = record.offset
    return {partition: offset for partition, offset in reached.items() if offset != before[partition]}


class _Places(NamedTuple):
    positions: dict[TopicPartition, int]
    """The offset of each partition at which to go on."""
    new: dict[TopicPartition, int]
    """Of those for which the group had none that is there."""


async def _places(
    client: Client,
    groups: Groups,
    group: str,
    partitions: Collection[TopicPartition],
    first: str,
    isolation: Isolation,
) -> _Places:
    found = _Places({}, {})
    if not partitions:
        return found
    committed = await committed_offsets(groups, group)
    begins = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    starts = begins
    if first == END:
        starts = await list_offsets(client, dict.fromkeys(partitions, LATEST), isolation=isolation)
    for partition in partitions:
        known = committed.get(partition)
        if known is not None and begins[partition].offset <= known.offset <= ends[partition].offset:
            found.positions[partition] = known.offset
        else:
            found.positions[partition] = found.new[partition] = starts[partition].offset
    return found
