"""A progress bar on the terminal, while a command goes through many bytes. Elsewhere there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_STEPS = 500


@contextmanager
def progress(total: int, label: str) -> Iterator[Callable[[int], None]]:
    """A function to be told how much more is done, `total` in all. The bar is on standard error."""
    if total <= 0 or not sys.stderr.isatty():
        yield lambda done: None
        return
    with click.progressbar(
        length=total, label=label, file=sys.stderr, update_min_steps=max(total // _STEPS, 1), show_pos=False
    ) as bar:
        yield bar.update


def clear_bar() -> None:
    """Makes room for a line where the bar is: its next step draws it anew."""
    if sys.stderr.isatty() and sys.stdout.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
