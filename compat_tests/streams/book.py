"""The input, and what must come of it: counted here, without Kafka Streams."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from spark_jobs.word_counts import BOOK

HOUR_MS = 3_600_000
LINE_MS = 10_000
"""A line is read in that time."""


class Line(NamedTuple):
    """A line of the book, and when it was read, in ms."""

    number: int
    read_at: int
    text: str


class Counts(NamedTuple):
    """The three tables of an application."""

    words: Counter[str]
    hours: Counter[str]
    letters: Counter[str]


def lines() -> list[Line]:
    """The lines that say something, read from a day ago on: within what a topic retains."""
    begin = int(time.time() * 1000) // HOUR_MS * HOUR_MS - 24 * HOUR_MS
    texts = [text for text in BOOK.read_text().split("\n") if text.strip()]
    return [Line(number, begin + number * LINE_MS, text) for number, text in enumerate(texts)]


def count(some: Sequence[Line]) -> Counts:
    counts = Counts(Counter(), Counter(), Counter())
    for line in some:
        for word in re.findall(r"[^\W\d_]+(?:’[^\W\d_]+)*", line.text.lower()):
            add(counts, word, line.read_at)
    return counts


def add(counts: Counts, word: str, read_at: int) -> None:
    """Counts in a word that was read at that time (ms)."""
    counts.words[word] += 1
    counts.hours[f"{read_at // HOUR_MS * HOUR_MS} {word}"] += 1
    counts.letters[word[0]] += 1
