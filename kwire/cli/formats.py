r"""Output formats of `kwire consume -f`: those of kcat.

    %s value   %S its length        %t topic       %T timestamp (ms)
    %k key     %K its length        %p partition   %h headers: name=value,name=value
    %R length of the value as 4 bytes, big-endian  %o offset   %% a percent sign
    \n \r \t \\ \xNN (a byte)

A length of null is -1; null itself is empty (a null header value is written NULL, as kcat does).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.client.consumer import ConsumedRecord

    Part = Callable[[ConsumedRecord], bytes]

_FIELD = re.compile(r"%(.?)", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|.?)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ConsumedRecord) -> bytes:
    pairs = [name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers]
    return b",".join(pairs)


_FIELDS: dict[str, Part] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: b"%d" % _length(record.value),
    "R": lambda record: _length(record.value).to_bytes(4, "big", signed=True),
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % _length(record.key),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "h": _headers,
}


def compile_format(text: str) -> Callable[[ConsumedRecord], bytes]:
    """A function from a record to its output. ValueError where the format has an unknown % or \\ sequence."""
    parts: list[bytes | Part] = []
    position = 0
    for token in _FIELD.finditer(text):
        parts.append(unescape(text[position : token.start()]))
        position = token.end()
        if token[1] == "%":
            parts.append(b"%")
        elif token[1] in _FIELDS:
            parts.append(_FIELDS[token[1]])
        else:
            raise ValueError(f"%{token[1]} is not known (known: %{' %'.join(_FIELDS)} %%)")
    parts.append(unescape(text[position:]))
    joined = _join_constants(parts)
    return lambda record: b"".join([part if isinstance(part, bytes) else part(record) for part in joined])


def _join_constants(parts: list[bytes | Part]) -> list[bytes | Part]:
    joined: list[bytes | Part] = []
    for part in parts:
        if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def to_json(record: ConsumedRecord) -> bytes:
    """A record as one line of JSON. Keys and values are text where they are UTF-8, else {"base64": ...}."""
    import json

    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "log_append" if record.log_append_time else "create",
        "key": json_text(record.key),
        "value": json_text(record.value),
        "headers": [[name, json_text(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def json_text(data: bytes | None) -> str | dict[str, str] | None:
    """Bytes in JSON: text where they are UTF-8, else {"base64": ...}."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(data).decode()}


def unescape(text: str) -> bytes:
    """The bytes as typed, its \\ sequences replaced. ValueError for an unknown one."""
    parts = []
    position = 0
    for token in _ESCAPE.finditer(text):
        parts.append(os.fsencode(text[position : token.start()]))
        position = token.end()
        escape = token[1]
        if escape[:1] == "x" and len(escape) > 1:
            parts.append(bytes([int(escape[1:], 16)]))
        elif escape in _ESCAPES:
            parts.append(_ESCAPES[escape])
        else:
            raise ValueError(f"\\{escape} is not known (known: \\n \\r \\t \\\\ \\0 \\xNN)")
    return b"".join([*parts, os.fsencode(text[position:])])
