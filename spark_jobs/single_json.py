"""Texts that hold one JSON value: Spark's parser takes the first of several, and does not see what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as f

BLANKS = " \t\r\n"
_END = "the end of this text"
_MALFORMED = "?"


def one_value(text: Column, options: Mapping[str, str] | None = None) -> Column:
    """Whether nothing follows the first JSON value of a text; never null. `options` are those of Spark's parser."""
    # Most are an object without others in it: it ends with its first brace.
    plain = text.startswith("{") & (f.instr(text, "}") == f.length(text))
    # A list of the text and a mark: the mark is its second element only if the text is one element.
    # The text may end with a comment, which ends with its line.
    marked = f.concat(f.lit("["), text, f.lit(f'\n,"{_END}"]'))
    # Fast, but it knows neither NaN nor what the options allow: where it says no, the parser itself is asked.
    fast = f.get_json_object(marked, "$[1]").eqNullSafe(_END)
    slow = f.get(f.from_json(marked, "array<string>", dict(options or {})), f.lit(1)).eqNullSafe(_END)
    return f.coalesce(plain, f.lit(False)) | fast | slow


def single(text: Column) -> Column:
    """The text, for `from_json` with a struct; or one that is malformed, where anything follows its first value."""
    blank = f.btrim(text, f.lit(BLANKS)) == ""
    return f.when(text.isNull() | blank | one_value(text), text).otherwise(_MALFORMED)
