"""Lengths of time, from words and into Spark's."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest

from spark_jobs.durations import Duration, words


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("7 days", timedelta(days=7)),
        ("1 Hour 30 minutes", timedelta(minutes=90)),
        ("2weeks 1millisecond", timedelta(weeks=2, milliseconds=1)),
        ("0 seconds", timedelta()),
        ("-59 minutes", timedelta(minutes=-59)),
    ],
)
def test_words(text: str, length: timedelta) -> None:
    found = Duration(signed=True).convert(text, None, None)
    assert found == length
    assert Duration(signed=True).convert(words(found), None, None) == length


@pytest.mark.parametrize("text", ["", "7", "days", "1 month", "-1 day", "1.5 hours", "1 day ago", "99999999999 weeks"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)
