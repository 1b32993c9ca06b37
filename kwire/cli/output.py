"""Tables: drawn by Rich on a terminal, tab-separated lines without a header in a pipe, JSON on request."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any


class Format(str, Enum):  # noqa: UP042  (Typer shows the values of a str Enum as choices)
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


def write_bytes(data: bytes) -> None:
    """Writes all of it to standard output at once; one write may take a part only, where it is unbuffered."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Prints rows under these column names; names that begin with `>` are of columns of numbers."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join("" if cell is None else str(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        table.add_row(*[Text("" if cell is None else str(cell)) for cell in row])
    Console().print(table)


def show_json(value: Any) -> None:
    """Prints a value as JSON, indented."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))
