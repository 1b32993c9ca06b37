"""What a file system may leave of the changes that nobody had synced."""

from __future__ import annotations

from enum import Enum


class Order(Enum):
    """Which changes go to the disk before which."""

    JOURNAL = "journal"
    """As ext4 with data=ordered: names and truncations go in the order in which they were made, and a sync of any file
    takes all of them along. A file's new data may stay behind, from any byte on, and then its size does too."""

    NONE = "none"
    """What POSIX promises, and no more: a file that was synced may have lost its name; names come and go in any order,
    unless one change builds on another; of what was written each sector (512 bytes) is there or not, amid a file of the
    new size, with zeros in between."""
