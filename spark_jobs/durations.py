"""Lengths of time on a command line: "7 days", "1 hour 30 minutes", "-59 minutes"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

_UNITS = {"millisecond", "second", "minute", "hour", "day", "week"}
_PART = re.compile(r"([+-]?\d+)\s*([a-z]+)")
_WHOLE = re.compile(rf"(?:{_PART.pattern}\s*)+")


class Duration(click.ParamType):
    """A timedelta, in the words that Spark has for it; months and years have no length of their own."""

    name = "DURATION"

    def __init__(self, *, signed: bool = False) -> None:
        self._signed = signed

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = value.strip().lower()
        parts = [(int(number), unit.removesuffix("s")) for number, unit in _PART.findall(text)]
        if not _WHOLE.fullmatch(text) or any(unit not in _UNITS for _, unit in parts):
            self.fail(f"{value!r} is not a length of time such as '90 minutes' or '1 day 12 hours'", param, context)
        try:
            length = sum((timedelta(**{f"{unit}s": number}) for number, unit in parts), timedelta())
        except OverflowError:
            self.fail(f"{value!r} is too long", param, context)
        if length < timedelta() and not self._signed:
            self.fail(f"{value!r} is less than nothing", param, context)
        return length


def milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


def words(length: timedelta) -> str:
    """As Spark reads it."""
    return f"{milliseconds(length)} milliseconds"
