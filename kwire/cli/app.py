"""The `kwire` command. Each subcommand is imported when it is used."""

from __future__ import annotations

import click

from kwire.cli.commands import CONTEXT, LazyGroup

COMMANDS = {
    "serve": "kwire.cli.serve_command:serve_command",
    "config": "kwire.cli.config:config",
    "topics": "kwire.cli.topics:topics",
    "groups": "kwire.cli.groups:groups",
    "produce": "kwire.cli.produce:produce",
    "consume": "kwire.cli.consume:consume",
    "log": "kwire.cli.log.group:log",
    "import": "kwire.cli.import_command:import_command",
    "export": "kwire.cli.export_command:export_command",
    "version": "kwire.cli.version:version",
}
"""Name of a subcommand: module and attribute."""


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kwire.cli.version import show_version

        show_version()
        context.exit()


@click.group("kwire", cls=LazyGroup, lazy=COMMANDS, context_settings=CONTEXT, no_args_is_help=True)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def app() -> None:
    """A Kafka broker in Python, and the tools to work with any Kafka cluster.

    kwire serve starts a broker. The other commands talk to a cluster
    (--bootstrap, by default localhost:9092) or look into files.
    """
