"""Regular expressions that clients give: of RE2, whose time grows with the text only, whatever the expression."""

from __future__ import annotations

import re

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True  # what a group matches is not asked, and takes slower ways of matching
_OPTIONS.max_mem = 1 << 17  # bounds the compiled expression: to compile one may take time that grows with its square

_MOST_CHARACTERS = 10_000
"""RE2 reads a class of characters in a time that grows with the square of its length: so many take 0.1 s at worst."""

_TOKENS = re.compile(
    r"""
      \\Q .*? (?: \\E | \Z)
    | \\ (?P<escape> .)
    | \[ \^? \]? (?: \[ : \^? \w+ : \] | \\ . | [^]\\] )*+ \]
    | \( \? P? < (?P<name> \w+ ) >
    """,
    re.DOTALL | re.VERBOSE,
)
"""What an expression that RE2 takes may have in it and RE2/J, which Apache Kafka uses, refuses."""


class PatternError(ValueError):
    """Not a regular expression of RE2; the text says why."""


class Pattern:
    """A regular expression for whole texts."""

    __slots__ = ("_expression",)

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        if len(text) > _MOST_CHARACTERS:
            raise PatternError("pattern too large - more than 10000 characters")
        try:
            self._expression = re2.compile(text, options=_OPTIONS)
        except re2.error as error:
            reason = error.args[0]
            raise PatternError(
                reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            ) from None
        _refuse_what_re2j_does(text)

    def matches(self, text: str) -> bool:
        """Whether it matches the whole of it."""
        return self._expression.fullmatch(text) is not None

    def steps(self, text: str) -> int:
        """How many steps `matches` takes at worst."""
        size: int = self._expression.programsize
        return size * (len(text) + 1)


def _refuse_what_re2j_does(text: str) -> None:
    names = set()
    for token in _TOKENS.finditer(text):
        if token["escape"] == "C":
            raise PatternError(r"invalid escape sequence: \C")
        name = token["name"]
        if name in names:
            raise PatternError(f"duplicate capture group name: {name}")
        if name is not None:
            names.add(name)
