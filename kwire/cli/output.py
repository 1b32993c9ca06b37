"""Tables: aligned on a terminal, tab-separated lines without a header in a pipe, JSON on request."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from select import PIPE_BUF
from typing import Any

GAP = "  "


def write_bytes(data: bytes) -> None:
    """Writes all of it to standard output at once; one write may take a part only, where it is unbuffered."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


async def write_patiently(data: bytes) -> None:
    """As `write_bytes`, but other tasks go on while nobody takes it."""
    waits = True
    for start in range(0, len(data), PIPE_BUF):
        waits = waits and await _until_room()
        write_bytes(data[start : start + PIPE_BUF])


async def _until_room() -> bool:
    """Waits until standard output takes PIPE_BUF bytes at once; whether it is of a kind that one waits for."""
    from trio.lowlevel import wait_writable

    try:
        await wait_writable(sys.stdout.buffer.fileno())
    except (OSError, ValueError):  # a file, or nothing of the system's
        return False
    return True


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows under these column names; names that begin with `>` are of columns of numbers."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in texts:
            print("\t".join(row))
        return
    from shutil import get_terminal_size

    for line in table_lines(columns, texts, get_terminal_size().columns):
        print(line)


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]], space: int) -> list[str]:
    """The lines of a table: columns as wide as their cells, or where `space` is too little, with cells wrapped."""
    from itertools import zip_longest
    from textwrap import wrap

    table = [[column.removeprefix(">") for column in columns], *rows]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    too_much = sum(widths) + len(GAP) * (len(widths) - 1) - space
    for _ in range(too_much):
        widest = widths.index(max(widths))
        widths[widest] = max(widths[widest] - 1, 1)
    lines = []
    for row in table:
        wrapped = [[cell] if len(cell) <= width else wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            cells = [
                part.rjust(width) if column.startswith(">") else part.ljust(width)
                for part, width, column in zip(parts, widths, columns, strict=True)
            ]
            lines.append(GAP.join(cells).rstrip())
    return lines


def show_json(value: Any) -> None:
    """Prints a value as JSON, indented."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))
