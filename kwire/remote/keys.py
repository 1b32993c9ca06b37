"""Which texts are keys of objects: those that every store takes as they are.

A key is names with slashes between: `topic-id/0/00000000000000000042-segment-id.log`. A name is letters, digits, `.`,
`_` and `-`, but neither `.` nor `..`. (Topic names, numbers and base64 ids are all that segments are named by. Other
characters are written differently in URLs, by one client or another.)
"""

from __future__ import annotations

import re

LONGEST_KEY = 800
"""Characters. S3 takes 1024 bytes, `key.prefix` included."""

LONGEST_NAME = 200
"""Characters between two slashes. File systems take 255 bytes, and a store of files adds to a name while it writes."""

_NAME = rf"(?!\.\.?(?:/|\Z))[A-Za-z0-9._-]{{1,{LONGEST_NAME}}}"
_KEY = re.compile(f"{_NAME}(?:/{_NAME})*")
_PREFIX = re.compile(f"(?:{_NAME}/)*")


def is_key(text: str) -> bool:
    return len(text) <= LONGEST_KEY and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    """Raises ValueError for what is no key."""
    if not is_key(key):
        raise ValueError(f"{key!r} is no key of an object")


def check_prefix(prefix: str) -> None:
    """Raises ValueError unless the text is empty or the beginning of a key that ends with a slash."""
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(f"{prefix!r} is no prefix of keys")


def check_range(start: int, end: int) -> None:
    """Raises ValueError unless 0 <= start <= end."""
    if not 0 <= start <= end:
        raise ValueError(f"no range of bytes: from {start} to {end}")
