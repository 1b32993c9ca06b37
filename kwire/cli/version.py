"""`kwire version`."""

from __future__ import annotations

import platform

import click

import kwire
from kwire.cli.commands import Command


@click.command("version", cls=Command)
def version() -> None:
    """Shows the version of kwire and of its Python."""
    show_version()


def show_version() -> None:
    print(f"kwire {kwire.__version__} (Python {platform.python_version()})")
