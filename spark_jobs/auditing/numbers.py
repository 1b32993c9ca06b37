"""What an audit found, and what of it deserves a look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spark_jobs.auditing.offsets import Bounds, Commit


@dataclass(frozen=True)
class Gap:
    """Offsets in a row that no record has."""

    first: int
    last: int

    @property
    def length(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Gaps:
    """Those of a partition."""

    count: int = 0
    offsets: int = 0
    singles: int = 0
    """How many are of one offset."""
    longest: tuple[Gap, ...] = ()
    """The longest first, not all."""

    def joined(self, more: Gap, most: int) -> Gaps:
        """With one more; `most` are kept by name."""
        longest = sorted((*self.longest, more), key=lambda gap: (-gap.length, gap.first))[:most]
        single = int(more.length == 1)
        return Gaps(self.count + 1, self.offsets + more.length, self.singles + single, tuple(longest))


@dataclass(frozen=True)
class PartitionCounts:
    """What is in a partition. Sizes are in bytes, of key, value and headers as they are without compression; times in
    ms since 1970."""

    bounds: Bounds
    records: int = 0
    """All that can be read, whatever became of their transactions."""
    aborted: int = 0
    open: int = 0
    """At or after the stable offset: in a transaction that has not ended, or behind one."""
    bytes: int = 0
    median: int = 0
    p99: int = 0
    largest: int = 0
    null_keys: int = 0
    null_values: int = 0
    untimed: int = 0
    """Records without a time, or with one beyond the year 9999."""
    first_time: int | None = None
    last_time: int | None = None
    gaps: Gaps = field(default_factory=Gaps)

    @property
    def offsets(self) -> int:
        return self.bounds.end - self.bounds.start

    @property
    def per_minute(self) -> float | None:
        """Records, on the average; None where they are all of one moment."""
        if self.first_time is None or self.last_time is None or self.first_time == self.last_time:
            return None
        return (self.records - self.untimed) / ((self.last_time - self.first_time) / 60_000)


@dataclass(frozen=True)
class Repeated:
    """An identity that several records have."""

    text: str
    times: int
    first: tuple[int, int]
    """Partition and offset: the least."""
    last: tuple[int, int]


@dataclass(frozen=True)
class Duplicates:
    """Records that have the identity of another one, among those that readers of committed records get."""

    ids: int = 0
    """How many identities come more than once."""
    surplus: int = 0
    """How many records there are beyond the first of each."""
    across: int = 0
    """How many of these identities are in several partitions."""
    unknown: int = 0
    """Records for which the expression gives no identity."""
    most: tuple[Repeated, ...] = ()


@dataclass(frozen=True)
class TopicCounts:
    """What is in a topic."""

    name: str
    policy: str
    partitions: tuple[PartitionCounts, ...]
    duplicates: Duplicates
    width: int
    """Of a slot of time, in ms."""
    slots: dict[int, dict[int, int]]
    """By the start of the slot (ms) and partition: records."""
    sizes: dict[int, int]
    """By N, records of 2**N to 2**(N+1)-1 bytes; -1 for those of none."""

    @property
    def compacted(self) -> bool:
        return "compact" in self.policy

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    def explained(self, part: PartitionCounts) -> dict[str, int]:
        """The offsets of a partition, by what is there: they add up to all."""
        singles = part.gaps.singles
        rest = part.gaps.offsets - singles
        return {
            "records": part.records - part.aborted - part.open,
            "aborted": part.aborted,
            "open": part.open,
            "markers": 0 if self.compacted else singles,
            "compaction": part.gaps.offsets if self.compacted else 0,
            "unclear": 0 if self.compacted else rest,
        }


@dataclass(frozen=True)
class Lag:
    """How far a group is behind in a partition."""

    commit: Commit
    bounds: Bounds
    unread: int | None
    """Records that are left to read; None where nothing was committed."""
    oldest: int | None
    """The time of the first of them, in ms since 1970."""

    @property
    def offsets(self) -> int | None:
        """As Kafka's own tools count: up to the end, with gaps and aborted records."""
        return None if self.commit.offset is None else self.bounds.end - self.commit.offset


@dataclass(frozen=True)
class Audit:
    """All that is told."""

    bootstrap_servers: str
    made_at: datetime
    identity: str
    """What makes a duplicate."""
    topics: tuple[TopicCounts, ...]
    lags: tuple[Lag, ...]

    def findings(self) -> list[Finding]:
        """What deserves a look, the worst first."""
        found = [finding for topic in self.topics for finding in _of_topic(topic)]
        found += [
            finding for name in sorted({lag.commit.group for lag in self.lags}) for finding in self._of_group(name)
        ]
        return sorted(found, key=lambda finding: ("wrong", "look", "note").index(finding.weight))

    def _of_group(self, name: str) -> Iterator[Finding]:
        lags = [lag for lag in self.lags if lag.commit.group == name]
        for lag in lags:
            place = f"{lag.commit.topic}/{lag.commit.partition}"
            if lag.commit.offset is None:
                yield Finding("note", f"Group {name} has committed nothing for {place}.")
            elif lag.commit.offset < lag.bounds.start:
                lost = lag.bounds.start - lag.commit.offset
                yield Finding(
                    "wrong", f"Group {name} has missed {lost:,} offsets of {place}: they were deleted unread."
                )
            elif lag.commit.offset > lag.bounds.end:
                yield Finding("wrong", f"Group {name} has committed {lag.commit.offset:,} for {place}, beyond its end.")
        unread = sum(lag.unread or 0 for lag in lags)
        if unread:
            times = [lag.oldest for lag in lags if lag.oldest is not None]
            since = f", the oldest of {moment(min(times))}" if times else ""
            yield Finding("look", f"Group {name} has {unread:,} records left to read{since}.")


@dataclass(frozen=True)
class Finding:
    """One sentence; its weight is wrong, look or note."""

    weight: str
    text: str


def _of_topic(topic: TopicCounts) -> Iterator[Finding]:
    repeated = topic.duplicates
    if repeated.surplus:
        across = f"; {repeated.across:,} of them are in several partitions" if repeated.across else ""
        text = f"{topic.name} has {repeated.surplus:,} duplicates, of {repeated.ids:,} identities{across}."
        yield Finding("look", text)
    if repeated.unknown:
        yield Finding("note", f"{repeated.unknown:,} records of {topic.name} have no identity: the expression is null.")
    for part in topic.partitions:
        place = f"{topic.name}/{part.bounds.partition}"
        parts = topic.explained(part)
        if part.records + part.gaps.offsets != part.offsets:
            text = f"{place} gave {part.records:,} records and {part.gaps.offsets:,} gaps for {part.offsets:,} offsets."
            yield Finding("wrong", text)
        if parts["unclear"]:
            longest = part.gaps.longest[0]
            text = (
                f"{place} lacks {parts['unclear']:,} offsets in gaps of two and more, the longest {longest.first:,} to "
                f"{longest.last:,}, and is not compacted: transactions that ended one after the other, or a loss."
            )
            yield Finding("look", text)
        if parts["open"]:
            text = (
                f"A transaction is open in {place}: readers of committed records wait at offset {part.bounds.stable:,}."
            )
            yield Finding("look", text)
        if part.untimed:
            text = f"{part.untimed:,} records of {place} have no time, or one beyond the year 9999: not milliseconds?"
            yield Finding("look", text)
        if parts["aborted"]:
            yield Finding("note", f"{place} holds {parts['aborted']:,} records of transactions that were aborted.")
        if parts["markers"]:
            text = f"{place} has {parts['markers']:,} gaps of one offset, as the ends of transactions leave them."
            yield Finding("note", text)
        if parts["compaction"]:
            text = f"{place} lacks {parts['compaction']:,} offsets: compacted away, or ends of transactions."
            yield Finding("note", text)


def moment(ms: int) -> str:
    """A time as people read it, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
