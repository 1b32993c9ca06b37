"""What a log tells of an append."""

from __future__ import annotations

from typing import NamedTuple


class AppendInfo(NamedTuple):
    """What an append did; for a duplicate, what the first append of the batch did."""

    first_offset: int
    last_offset: int
    """Inclusive."""
    max_timestamp: int
    log_append_time: int
    """ms where the topic is of LogAppendTime (or the batch a duplicate), else -1."""
    log_start_offset: int
    duplicate: bool = False
