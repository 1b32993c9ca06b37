"""Click's commands as kwire has them, the same with every Click from 8.1 on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from kwire.cli.running import guarded

CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}
"""What the command and, by inheritance, all of its subcommands have."""


class Argument(click.Argument):
    """An argument that help describes."""

    def __init__(self, param_decls: Sequence[str], *, metavar: str, description: str, **attributes: Any) -> None:
        super().__init__(param_decls, metavar=metavar, **attributes)
        self.description = description

    @property
    def usage(self) -> str:
        """`TOPIC`, `[TOPIC]`, `TOPIC...` or `[TOPIC]...`."""
        named = str(self.metavar) if self.required else f"[{self.metavar}]"
        return named if self.nargs == 1 else f"{named}..."

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [self.usage]

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return f"'{self.metavar}'"


class Command(click.Command):
    """A command whose help begins with its arguments."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [(each.usage, each.description) for each in self.params if isinstance(each, Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)


class Group(click.Group):
    """Subcommands in the order in which they were defined, with a guess what a wrong name was to be."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            from difflib import get_close_matches

            close = " or ".join(map(repr, get_close_matches(name, known)))
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {close}?" if close else ""))
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """The whole command: a subcommand is imported when it is used, and every error is one line."""

    def __init__(self, *, lazy: Mapping[str, str], **attributes: Any) -> None:
        """`lazy` has for each name the module and attribute of a command."""
        super().__init__(**attributes)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self._lazy:
            module, _, attribute = self._lazy[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """In place of Click's: that one has a say of its own about Ctrl-C and closed pipes."""
        arguments = sys.argv[1:] if args is None else list(args)

        def run() -> Any:
            try:
                with self.make_context(prog_name or self.name, arguments) as context:
                    return self.invoke(context)
            except click.exceptions.Exit as end:
                return end.exit_code

        raise SystemExit(guarded(run))
