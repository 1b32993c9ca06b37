"""What an audit says of things that a test can hardly bring about in a broker; without Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.audit import write
from spark_jobs.auditing.numbers import (
    Audit,
    Duplicates,
    Finding,
    Gap,
    Gaps,
    Lag,
    PartitionCounts,
    Repeated,
    TopicCounts,
    moment,
)
from spark_jobs.auditing.offsets import Bounds, Commit

DAY = 86_400_000


def topic_of(*parts: PartitionCounts, policy: str = "delete", **more: object) -> TopicCounts:
    given = {"duplicates": Duplicates(), "width": DAY, "slots": {}, "sizes": {}, **more}
    return TopicCounts("t", policy, parts, **given)  # type: ignore[arg-type]


def audit_of(*topics: TopicCounts, lags: tuple[Lag, ...] = ()) -> Audit:
    return Audit("here:9092", datetime(2024, 5, 1, tzinfo=UTC), "key and value", topics, lags)


def lag_of(offset: int | None, unread: int | None = None, oldest: int | None = None, number: int = 0) -> Lag:
    return Lag(Commit("g", "Stable", 1, "t", number, offset), Bounds("t", number, 100, 200, 200), unread, oldest)


@pytest.mark.parametrize(
    ("lag", "weight", "text"),
    [
        (lag_of(60, 100, DAY), "wrong", "Group g has missed 40 offsets of t/0: they were deleted unread."),
        (lag_of(250, 0), "wrong", "Group g has committed 250 for t/0, beyond its end."),
        (lag_of(None), "note", "Group g has committed nothing for t/0."),
        (lag_of(150, 50, DAY), "look", "Group g has 50 records left to read, the oldest of 1970-01-02 00:00:00."),
        (lag_of(150, 50), "look", "Group g has 50 records left to read."),
    ],
)
def test_a_group_that_lost_its_place_is_told(lag: Lag, weight: str, text: str) -> None:
    assert Finding(weight, text) in audit_of(lags=(lag,)).findings()


def test_nothing_is_told_of_a_group_that_has_read_all() -> None:
    assert audit_of(lags=(lag_of(200, 0),)).findings() == []


def test_counts_that_do_not_add_up_and_records_without_a_time_come_first() -> None:
    twice = PartitionCounts(Bounds("t", 0, 0, 10, 10), records=11)
    untimed = PartitionCounts(Bounds("t", 1, 0, 10, 10), records=9, untimed=3, gaps=Gaps(1, 1, 1, (Gap(4, 4),)))
    assert [finding.text for finding in audit_of(topic_of(untimed, twice)).findings()] == [
        "t/0 gave 11 records and 0 gaps for 10 offsets.",
        "3 records of t/1 have no time, or one beyond the year 9999: not milliseconds?",
        "t/1 has 1 gaps of one offset, as the ends of transactions leave them.",
    ]


@pytest.mark.parametrize(("policy", "kinds"), [("delete", (1, 0, 6)), ("compact,delete", (0, 7, 0))])
def test_the_policy_and_the_length_of_a_gap_say_what_it_may_be(policy: str, kinds: tuple[int, ...]) -> None:
    gaps = Gaps(1, 1, 1, (Gap(4, 4),)).joined(Gap(10, 15), most=1)
    assert gaps == Gaps(2, 7, 1, (Gap(10, 15),))
    part = PartitionCounts(Bounds("t", 0, 0, 14, 16), records=9, aborted=2, open=1, gaps=gaps)
    explained = topic_of(part, policy=policy).explained(part)
    assert tuple(explained.values()) == (6, 2, 1, *kinds)
    assert sum(explained.values()) == part.offsets


def test_topics_of_any_shape_make_a_report(tmp_path: Path) -> None:
    empty = topic_of(PartitionCounts(Bounds("t", 0, 5, 5, 5)))
    many = TopicCounts(
        "many",
        "delete",
        tuple(PartitionCounts(Bounds("many", n, 0, n, n), records=n, first_time=0, last_time=DAY) for n in range(60)),
        Duplicates(1, 1, 0, 0, (Repeated("<\0>", 2, (0, 0), (1, 0)),)),
        DAY,
        {0: dict.fromkeys(range(60), 7), 200 * DAY: {3: 1}},
        {-1: 3, 20: 4},
    )
    lags = tuple(lag_of(number * 4, 1, DAY, number) for number in range(50))
    text = write(audit_of(empty, many, lags=lags), tmp_path).read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "audit.html",
        "lag.png",
        "topic-many.png",
        "topic-t.png",
    ]
    assert "&lt;\\x00&gt;" in text


def test_a_moment_is_told_in_utc() -> None:
    assert moment(1_357_034_400_000) == "2013-01-01 10:00:00"
