"""Where a group shall go on reading, as `kwire groups reset-offsets` is told, and the offsets that makes.

An offset that the log does not have (any more, yet) becomes the nearest one that it has, as with Apache Kafka's tool.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from kwire.cli.running import CommandError

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.group_offsets import CommittedOffset
    from kwire.protocol.types import TopicPartition

_DURATION = re.compile(r"P(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,9}))?S)?)?")
_DAY_MS, _HOUR_MS, _MINUTE_MS, _SECOND_MS = 86_400_000, 3_600_000, 60_000, 1000


class Where(Enum):
    """What a Reset's number is: nothing, an offset, a distance from the committed offset, a time in ms."""

    EARLIEST = auto()
    LATEST = auto()
    CURRENT = auto()
    OFFSET = auto()
    SHIFT = auto()
    TIME = auto()


class Reset(NamedTuple):
    where: Where
    number: int = 0


class Target(NamedTuple):
    """A partition's new offset, and where it is not the one that was asked for, that one."""

    offset: int
    wanted: int | None = None


def parse_duration(text: str) -> int:
    """The ms of an ISO 8601 duration of days and less, such as P1DT12H or PT0.5S. ValueError."""
    found = _DURATION.fullmatch(text)
    if not found or text.endswith(("P", "T")):
        raise ValueError(f"{text}: must be a duration like P7D, PT12H or P1DT2H30M")
    days, hours, minutes, seconds, fraction = (found[number] or "0" for number in range(1, 6))
    whole = int(days) * _DAY_MS + int(hours) * _HOUR_MS + int(minutes) * _MINUTE_MS + int(seconds) * _SECOND_MS
    return whole + int(fraction.ljust(3, "0")[:3])


async def resolve_reset(
    client: Client,
    reset: Reset,
    partitions: Collection[TopicPartition],
    committed: Mapping[TopicPartition, CommittedOffset],
) -> dict[TopicPartition, Target]:
    """The new offset of each partition. CommandError for a shift from where the group has no offset."""
    from kwire.client.offsets import EARLIEST, LATEST, list_offsets

    async def listed(timestamp: int) -> dict[TopicPartition, int]:
        answers = await list_offsets(client, dict.fromkeys(partitions, timestamp))
        return {partition: answers[partition].offset for partition in partitions}

    first, end = await listed(EARLIEST), await listed(LATEST)
    match reset.where:
        case Where.EARLIEST:
            wanted = first
        case Where.LATEST:
            wanted = end
        case Where.TIME:
            found = await listed(reset.number)
            wanted = {partition: end[partition] if offset < 0 else offset for partition, offset in found.items()}
        case Where.OFFSET:
            wanted = dict.fromkeys(partitions, reset.number)
        case Where.CURRENT:
            wanted = {
                partition: committed[partition].offset if partition in committed else end[partition]
                for partition in partitions
            }
        case Where.SHIFT:
            for topic, number in partitions:
                if (topic, number) not in committed:
                    raise CommandError(f"{topic}-{number} cannot be shifted: the group has no offset for it")
            wanted = {partition: committed[partition].offset + reset.number for partition in partitions}
    targets = {}
    for partition, offset in wanted.items():
        nearest = min(max(offset, first[partition]), end[partition])
        targets[partition] = Target(nearest, None if nearest == offset else offset)
    return targets
