"""`kwire log`: its subcommands."""

from __future__ import annotations

from kwire.cli.commands import LazyGroup

SUBCOMMANDS = {
    "dump": "kwire.cli.log.dump:dump",
    "verify": "kwire.cli.log.verify:verify",
    "sizes": "kwire.cli.log.sizes:sizes",
    "dirs": "kwire.cli.log.dirs:dirs",
    "move": "kwire.cli.log.move:move",
}

log = LazyGroup(
    name="log",
    lazy=SUBCOMMANDS,
    no_args_is_help=True,
    help="Looks into logs, Apache Kafka's too, and moves them.",
)
