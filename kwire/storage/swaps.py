"""Finishing what a crash interrupted: deletions, and the replacement of segments by compacted ones.

.deleted   was going to be removed: remove it
.cleaned   a compacted segment that was not complete: remove it
.swap      a complete compacted segment: it replaces the segments whose offsets it covers
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.batch_walk import SCAN_WINDOW, headers

_UNDONE = (layout.DELETED, layout.CLEANED)


def finish_swaps(files: FileSystem, folder: str, names: Sequence[str]) -> list[str]:
    """Puts a partition's folder in order; returns the names of the files that are in it then. Raises OSError."""
    swaps = [name for name in names if name.endswith(layout.SWAP)]
    undone = [name for name in names if name.endswith(_UNDONE)]
    # A split writes several .swap files beside .cleaned ones that are not complete yet: it is undone as a whole, and
    # the .cleaned ones, which say so, go last.
    first_cleaned = min((_offset(name) for name in names if name.endswith(layout.CLEANED)), default=None)
    void = [name for name in swaps if first_cleaned is not None and _offset(name) >= first_cleaned]
    for name in void:
        files.remove(f"{folder}/{name}")
    if void:
        files.sync_dir(folder)
    for name in undone:
        files.remove(f"{folder}/{name}")
    gone = {*void, *undone}
    kept = [name for name in names if name not in gone]
    swaps = [name for name in swaps if name not in gone]
    if not swaps:
        return kept
    covered = [_range(files, folder, name) for name in swaps if name.endswith(layout.LOG + layout.SWAP)]
    if covered:
        low, high = min(start for start, _ in covered), max(end for _, end in covered)
        for name in kept:
            if not name.endswith(layout.SWAP) and low <= _offset(name) < high:
                files.remove(f"{folder}/{name}")
    # The .log first: a start after a crash amid this would take an index that has its name already for one of those
    # that are replaced.
    for name in sorted(swaps, key=lambda name: not name.endswith(layout.LOG + layout.SWAP)):
        files.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(layout.SWAP)}")
    return files.list(folder)


def _offset(name: str) -> int:
    parsed = layout.parse_segment_name(name)
    return parsed[0] if parsed is not None else -1


def _range(files: FileSystem, folder: str, name: str) -> tuple[int, int]:
    """The offsets [first, end) that a segment covers: the first at least, where it is left without records."""
    file = files.open(f"{folder}/{name}")
    start = _offset(name)
    end = start + 1
    for _, header in headers(file, 0, file.size(), SCAN_WINDOW):
        end = header.next_offset
    return start, end
