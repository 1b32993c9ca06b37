"""Patterns of file names as Hadoop has them: *, ?, [a-z], [^a], {csv,json}, and a backslash before what is meant so."""

from __future__ import annotations

import re

from spark_jobs.faults import Fault

_SPECIAL_IN_RE_ALONE = ".$()|+&~#"


def compiled(glob: str) -> re.Pattern[str]:
    """What `GlobPattern` of Hadoop makes of it, for `fullmatch`. Raises Fault where that would refuse it."""
    written = ""
    braces = 0
    in_class = False
    characters = iter(glob)
    for character in characters:
        before, opened = written[-1:], in_class
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise _wrong(glob, "nothing follows the backslash")
            written += re.escape(escaped)
        elif character in _SPECIAL_IN_RE_ALONE:
            written += f"\\{character}"
        elif character == "*":
            written += ".*"
        elif character == "?":
            written += "."
        elif character == "{":
            written += "(?:"
            braces += 1
        elif character == "," and braces:
            written += "|"
        elif character == "}" and braces:
            written += ")"
            braces -= 1
        elif character == "}":
            written += "\\}"
        elif character == "[":
            if opened:
                raise _wrong(glob, "a [ is not closed")
            written += "["
            in_class = True
        elif character == "]":
            written += "]" if opened else "\\]"
            in_class = False
        elif character == "!" and opened and before == "[":
            written += "^"
        elif character == "^" and not opened:
            written += "\\^"
        else:
            written += character
    if in_class:
        raise _wrong(glob, "a [ is not closed")
    if braces:
        raise _wrong(glob, "a { is not closed")
    try:
        return re.compile(written, re.DOTALL)
    except re.error as error:
        raise _wrong(glob, str(error)) from None


def _wrong(glob: str, why: str) -> Fault:
    return Fault(f"--names {glob!r} is no pattern of names: {why}")
