"""The `kwire` command. Each subcommand is imported when it is used."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperGroup

from kwire.cli.running import guarded

COMMANDS = {
    "serve": "kwire.cli.app:serve_command",
    "config": "kwire.cli.config:config",
    "topics": "kwire.cli.topics:topics",
    "produce": "kwire.cli.produce:produce",
    "consume": "kwire.cli.consume:consume",
    "dump-log": "kwire.cli.dump_log:dump_log",
    "version": "kwire.cli.version:version",
}
"""Name of a subcommand: module and attribute, a function or a Typer of its own."""

MARKUP = "rich" if sys.stdout.isatty() else None
"""Help is drawn by Rich on a terminal only; Rich is not even imported elsewhere."""


class Commands(TyperGroup):
    """The subcommands, found by name; and errors as one line each."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:  # all names, for "did you mean"
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        extra["standalone_mode"] = False
        run = super().main
        raise SystemExit(guarded(lambda: run(args, "kwire", **extra)))


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        single = new_typer()
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


def new_typer(**options: Any) -> typer.Typer:
    """A Typer as all of kwire's commands have it."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=MARKUP,  # type: ignore[arg-type]
        context_settings={"help_option_names": ["-h", "--help"]},
        **options,
    )


def _show_version(wanted: bool) -> None:
    if wanted:
        from kwire.cli.version import version

        version()
        raise typer.Exit


app = new_typer(cls=Commands, no_args_is_help=True)


@app.callback()
def kwire(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A Kafka broker in Python, and the tools to work with any Kafka cluster.

    kwire serve starts a broker. The other commands talk to a cluster
    (--bootstrap, by default localhost:9092) or look into files.
    """


def serve_command(**values: Any) -> int:
    from kwire.cli.serve import serve

    return serve(**values)


def _describe_serve() -> None:
    """Gives `serve_command` the parameters of the table and the doc of `serve`."""
    from kwire.cli import serve
    from kwire.cli.serve_options import DEFAULT_LOG_LEVEL, OPTIONS, PROPERTIES, PROPERTIES_HELP

    file = typer.Argument(metavar="server.properties", help=PROPERTIES_HELP, show_default=False)
    parameters = [_parameter(PROPERTIES, Annotated[Optional[str], file])]  # noqa: UP045  (Typer reads it at run time)
    for option in OPTIONS:
        details = typer.Option(
            option.flag,
            metavar=option.metavar,
            help=option.help,
            show_default=DEFAULT_LOG_LEVEL if option.name == "log_level" else False,
        )
        kind: Any = Optional[list[str]] if option.repeated else Optional[str]  # noqa: UP045
        parameters.append(_parameter(option.name, Annotated[kind, details]))
    serve_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    serve_command.__doc__ = serve.serve.__doc__


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_describe_serve()
