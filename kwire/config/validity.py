"""Which values of its type a key takes. Each check raises ConfigError; `str()` of it describes the valid values."""

from __future__ import annotations

import re
from typing import Any, Protocol

from kwire.config.errors import ConfigError
from kwire.config.types import invalid, trim


class Validity(Protocol):
    def check(self, name: str, value: Any) -> None:
        """Raises ConfigError where the key must not have this value. A value of None (not set) is never asked about."""


class Range:
    """Numbers from `least` to `greatest`, both included; None: no bound."""

    __slots__ = ("greatest", "least")

    def __init__(self, least: float | None, greatest: float | None) -> None:
        self.least = least
        self.greatest = greatest

    def check(self, name: str, value: Any) -> None:
        if self.least is not None and value < self.least:
            raise invalid(name, value, f"Value must be at least {self.least}")
        if self.greatest is not None and value > self.greatest:
            raise invalid(name, value, f"Value must be no more than {self.greatest}")

    def __str__(self) -> str:
        if self.greatest is None:
            return f"[{self.least},...]"
        return f"[{self.least},...,{self.greatest}]"


class RangeOr:
    """Numbers from `least` to `greatest`, or one number besides."""

    __slots__ = ("greatest", "least", "other")

    def __init__(self, least: int, greatest: int, other: int) -> None:
        self.least = least
        self.greatest = greatest
        self.other = other

    def check(self, name: str, value: Any) -> None:
        if value != self.other and not self.least <= value <= self.greatest:
            raise invalid(
                name, value, f"Value must be between {self.least} and {self.greatest} or equal to {self.other}"
            )

    def __str__(self) -> str:
        return f"[{self.least},...,{self.greatest}] or {self.other}"


class OneOf:
    """One of a few words."""

    __slots__ = ("any_case", "words")

    def __init__(self, *words: str, any_case: bool = False) -> None:
        self.words = words
        self.any_case = any_case

    def check(self, name: str, value: Any) -> None:
        if value not in self.words and not (self.any_case and value.upper() in self.words):
            case = " (case insensitive)" if self.any_case else ""
            raise invalid(name, value, f"String must be one of{case}: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"{'(case insensitive) ' if self.any_case else ''}[{', '.join(self.words)}]"


class ListOf:
    """Lists without empty items, of any words or of a few; an item that is there twice counts once."""

    __slots__ = ("empty", "words")

    def __init__(self, *words: str, empty: bool = True) -> None:
        self.words = words
        self.empty = empty

    def check(self, name: str, value: Any) -> None:
        if not value and not self.empty:
            words = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {words}")
        for word in value:
            if not word:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words and word not in self.words:
                raise invalid(name, word, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""


class NotEmpty:
    """Any text but none."""

    __slots__ = ()

    def check(self, name: str, value: Any) -> None:
        if not value:
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class ThrottledReplicas:
    """`*`, or a list of partition:broker pairs; empty items count for nothing."""

    __slots__ = ()
    _PAIR = re.compile(r"(?:[0-9]+:[0-9]+)?")
    _FORM = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def check(self, name: str, value: Any) -> None:
        pairs = [trim(pair) for pair in value]
        if "".join(pairs) != "*" and not all(map(self._PAIR.fullmatch, pairs)):
            raise invalid(
                name,
                value,
                f"{name} must be the literal '*' or a list of replicas in the following format: {self._FORM}",
            )

    def __str__(self) -> str:
        return self._FORM


def at_least(least: float) -> Range:
    return Range(least, None)


def between(least: float, greatest: float) -> Range:
    return Range(least, greatest)
