"""Where to begin and to stop reading."""

from __future__ import annotations

import pytest

from kwire.cli.positions import Range, parse_range, parse_time


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], Range("beginning")),
        (["beginning"], Range("beginning")),
        (["end"], Range("end")),
        (["4711"], Range(4711)),
        (["-10"], Range(-10)),
        (["0"], Range(0)),
        (["-0"], Range("end")),
        (["9223372036854775807"], Range(2**63 - 1)),
        (["s@1000"], Range(None, 1000)),
        (["@1000", "e@2000"], Range(None, 1000, 2000)),
        (["e@2000", "7"], Range(7, None, 2000)),
        (["e@2000"], Range("beginning", None, 2000)),
    ],
)
def test_a_range(texts: list[str], expected: Range) -> None:
    assert parse_range(texts) == expected


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["start"], "must be beginning, end, OFFSET"),
        (["9223372036854775808"], "must be beginning, end, OFFSET"),
        (["1_000"], "must be beginning, end, OFFSET"),
        (["s@noon"], "must be ms since the epoch or a time like"),
        (["s@9223372036854775808"], "must be ms since the epoch or a time like"),
        (["s@-1"], "must be ms since the epoch or a time like"),
        (["s@1969-12-31T23:59:59.999"], "is before 1970"),
        (["end", "5"], "where to begin is already said"),
    ],
)
def test_no_range(texts: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_range(texts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1769860800000", 1769860800000),
        ("2026-01-31", 1769817600000),
        ("2026-01-31T12:00", 1769860800000),
        ("2026-01-31T12:00:00+02:00", 1769853600000),
        ("2026-01-31T12:00:00.250Z", 1769860800250),
        ("1970-01-01T00:00:01.001", 1001),
        ("1970-01-01T00:00:00.0019", 1),
    ],
)
def test_a_time(text: str, expected: int) -> None:
    assert parse_time(text) == expected
