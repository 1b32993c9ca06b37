"""`kwire version`."""

from __future__ import annotations

import platform
from importlib.util import find_spec

import click

import kwire
from kwire.cli.commands import Command


@click.command("version", cls=Command)
def version() -> None:
    """Shows the version of kwire and of its Python, and whether kwire is compiled."""
    show_version()


def show_version() -> None:
    compiled = ", compiled" if find_spec("kwire.compiled__mypyc") else ""
    print(f"kwire {kwire.__version__} (Python {platform.python_version()}{compiled})")
