"""Regular expressions that clients give: of RE2, whose time grows with the text only, whatever the expression."""

from __future__ import annotations

from collections.abc import Callable

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """Not a regular expression of RE2; the text says why."""


def whole_match(pattern: str) -> Callable[[str], object]:
    """A function that finds whether the expression matches a whole text. Raises PatternError."""
    try:
        return re2.compile(pattern, options=_OPTIONS).fullmatch
    except re2.error as error:
        reason = error.args[0]
        raise PatternError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None
