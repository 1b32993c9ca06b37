"""`kwire log`: its subcommands."""

from __future__ import annotations

from kwire.cli.commands import LazyGroup

SUBCOMMANDS = {
    "dump": "kwire.cli.log.dump:dump",
    "verify": "kwire.cli.log.verify:verify",
    "sizes": "kwire.cli.log.sizes:sizes",
}

log = LazyGroup(
    name="log",
    lazy=SUBCOMMANDS,
    no_args_is_help=True,
    help="Look into the files of logs, those of Apache Kafka as well.",
)
