"""Where to begin and to stop reading, as written on the command line: `-o`.

    beginning | end       the first offset, the end
    4711                  this offset
    -10                   so many offsets before the end; -0 is the end
    s@TIME or @TIME       the first record of that time or later
    e@TIME                stop before the first record of that time or later

TIME is ms since the epoch, or ISO 8601: 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00:00+02:00 (without a zone: UTC).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.offsets import Isolation
    from kwire.protocol.types import TopicPartition

BEGINNING = "beginning"
END = "end"

_OFFSET = re.compile(r"-?[0-9]{1,19}")
_MILLISECONDS = re.compile(r"[0-9]{1,19}")
_GREATEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Range(NamedTuple):
    """What to read. `start` is `beginning` or `end`, an offset (negative: from the end), or `at`, a time in ms."""

    start: str | int | None = None
    at: int | None = None
    before: int | None = None
    """A time in ms at which to stop."""


def parse_range(texts: Iterable[str]) -> Range:
    """The values of all `-o` options. ValueError says what is wrong."""
    found = Range()
    for text in texts:
        if text.startswith("e@"):
            found = found._replace(before=parse_time(text[2:]))
        elif found.start is not None or found.at is not None:
            raise ValueError(f"{text}: where to begin is already said")
        elif text.startswith(("s@", "@")):
            found = found._replace(at=parse_time(text.partition("@")[2]))
        elif text in (BEGINNING, END):
            found = found._replace(start=text)
        elif _OFFSET.fullmatch(text) and abs(int(text)) <= _GREATEST:
            found = found._replace(start=int(text) or (END if text.startswith("-") else 0))
        else:
            raise ValueError(f"{text}: must be beginning, end, OFFSET, -COUNT, s@TIME or e@TIME")
    if found.start is None and found.at is None:
        found = found._replace(start=BEGINNING)
    return found


def parse_time(text: str) -> int:
    """Milliseconds since the epoch; parts of one count for nothing. ValueError."""
    if _MILLISECONDS.fullmatch(text) and int(text) <= _GREATEST:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text}: must be ms since the epoch or a time like 2026-01-31T12:00") from None
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    if since < timedelta():
        raise ValueError(f"{text}: is before 1970, where Kafka's times begin")
    return since // timedelta(milliseconds=1)


async def resolve_start(
    client: Client, partitions: Iterable[TopicPartition], wanted: Range, isolation: Isolation
) -> dict[TopicPartition, int]:
    """The offset of each partition at which to begin."""
    from kwire.client.offsets import EARLIEST, LATEST, list_offsets

    partitions = list(partitions)

    async def listed(timestamp: int) -> dict[TopicPartition, int]:
        answers = await list_offsets(client, dict.fromkeys(partitions, timestamp), isolation=isolation)
        return {partition: answer.offset for partition, answer in answers.items()}

    if wanted.at is not None:
        found, ends = await listed(wanted.at), await listed(LATEST)
        return {partition: ends[partition] if offset < 0 else offset for partition, offset in found.items()}
    if wanted.start == END:
        return await listed(LATEST)
    if wanted.start == BEGINNING:
        return await listed(EARLIEST)
    assert isinstance(wanted.start, int)
    if wanted.start >= 0:
        return dict.fromkeys(partitions, wanted.start)
    first, ends = await listed(EARLIEST), await listed(LATEST)
    return {partition: max(first[partition], end + wanted.start) for partition, end in ends.items()}


async def resolve_end(
    client: Client, partitions: Iterable[TopicPartition], wanted: Range, at_end: bool, isolation: Isolation
) -> dict[TopicPartition, int] | None:
    """The offset of each partition before which to stop; None where nothing says so.

    With `at_end` that is its end as of now; with a time, its first record of that time or later, if there is one.
    """
    from kwire.client.offsets import LATEST, list_offsets

    partitions = list(partitions)
    if not at_end and wanted.before is None:
        return None
    ends = {
        partition: answer.offset
        for partition, answer in (
            await list_offsets(client, dict.fromkeys(partitions, LATEST), isolation=isolation)
        ).items()
    }
    if wanted.before is not None:
        answers = await list_offsets(client, dict.fromkeys(partitions, wanted.before), isolation=isolation)
        for partition, answer in answers.items():
            if answer.offset >= 0:
                ends[partition] = min(ends[partition], answer.offset)
    return ends
