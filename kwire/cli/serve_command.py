"""`kwire serve` as Click has it, made from the table of its options."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import click

from kwire.cli import serve
from kwire.cli.commands import Argument, Command
from kwire.cli.serve_options import DEFAULT_LOG_LEVEL, OPTIONS, PROPERTIES, PROPERTIES_HELP


def _serve(**values: Any) -> int:
    return serve.serve(**values)


serve_command = Command(
    "serve",
    callback=_serve,
    help=cleandoc(serve.serve.__doc__ or ""),
    params=[
        Argument([PROPERTIES], metavar="server.properties", description=PROPERTIES_HELP, required=False),
        *(
            click.Option(
                [option.flag],
                metavar=option.metavar,
                help=option.help,
                multiple=option.repeated,
                show_default=DEFAULT_LOG_LEVEL if option.name == "log_level" else False,
            )
            for option in OPTIONS
        ),
    ],
)
