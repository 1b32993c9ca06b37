"""Java's properties format, as `server.properties` has it. In a file its characters are those of ISO 8859-1.

- A line is `key=value`, `key:value` or `key value`; white space around key and separator does not count, white space
  at the end of the value does.
- A line that begins with `#` or `!` is a comment; blank lines do not count.
- An odd number of backslashes at the end of a line joins it with the next, whose leading white space is dropped.
- `\\t`, `\\n`, `\\r`, `\\f`, `\\uXXXX`; a backslash before anything else is just dropped.
- A key given twice has its last value.
"""

from __future__ import annotations

from collections.abc import Iterator

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """The text is not in the properties format; `line` is counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values in the order of their first mention. Raises PropertiesError (a bad `\\u` escape)."""
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end = _end_of_key(line)
        rest = line[key_end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        values[_unescape(line[:key_end], number)] = _unescape(rest, number)
    return values


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, continued ones joined, each with the number of its first."""
    joined, first = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANK)
        if not joined:
            if not line or line[0] in "#!":
                first = 0
                continue
            first = first or number
        elif not line:  # a continuation by nothing ends the line
            yield first, joined
            joined, first = "", 0
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined += line[:-1]
        else:
            yield first, joined + line
            joined, first = "", 0
    if first:
        yield first, joined


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line):
        character = line[position]
        if character == "\\":
            position += 1
        elif character in "=:" or character in _BLANK:
            return position
        position += 1
    return len(line)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
            continue
        character = text[position : position + 1]
        position += 1
        if character != "u":
            out.append(_ESCAPES.get(character, character))
            continue
        digits = text[position : position + 4]
        position += 4
        if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise PropertiesError(line, "a \\u escape needs four hexadecimal digits")
        out.append(chr(int(digits, 16)))
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
