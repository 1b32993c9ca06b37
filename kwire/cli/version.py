"""`kwire version`."""

from __future__ import annotations

import platform
from importlib.util import find_spec

import click

import kwire
from kwire.cli.commands import Command


@click.command("version", cls=Command)
def version() -> None:
    """Shows the version of kwire and of its Python."""
    show_version()


def show_version() -> None:
    form = ", compiled" if is_compiled() else ""
    print(f"kwire {kwire.__version__} (Python {platform.python_version()}{form})")


def is_compiled() -> bool:
    """Whether this process would import, or has, what is compiled of kwire (`setup.py`: COMPILED)."""
    found = find_spec("kwire.storage.segment")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")
