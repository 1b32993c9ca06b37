"""`kwire config`: the table of every configuration key."""

from __future__ import annotations

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import format_option
from kwire.cli.output import show_json, show_table
from kwire.cli.running import MISUSED, CommandError


@click.command("config", cls=Command)
@click.argument(
    "part", cls=Argument, metavar="KEY", description="Only keys that contain this, such as retention.", default=""
)
@click.option("--describe", is_flag=True, help="List the keys and what kwire does with each.")
@click.option("--topic", is_flag=True, help="The keys of topics instead of those of brokers.")
@click.option("--group", is_flag=True, help="The keys of groups.")
@format_option("How to print them.")
def config(part: str, describe: bool, topic: bool, group: bool, as_json: bool) -> None:
    """Lists the configuration keys of brokers, topics or groups.

    Brokers take the keys of Apache Kafka: in server.properties, as
    KWIRE_... environment variables (KWIRE_LOG_RETENTION_MS), or with
    kwire serve --set.

    Supported keys act. Keys of KRaft (kraft) and keys that have nothing
    to tune in kwire (moot) are accepted with a warning. Keys whose
    feature is still to come (later) are refused unless they have their
    default.
    """
    if not describe:
        raise CommandError("say what to do with the configuration: kwire config --describe [KEY]", MISUSED)
    if topic and group:
        raise CommandError("--topic or --group, not both", MISUSED)
    from kwire.config.group_keys import GROUP_KEYS
    from kwire.config.keys import BROKER_KEYS
    from kwire.config.topic_keys import TOPIC_KEYS

    kind, table = ("topic", TOPIC_KEYS) if topic else ("group", GROUP_KEYS) if group else ("broker", BROKER_KEYS)
    keys = [key for name, key in sorted(table.items()) if part in name]
    if not keys:
        raise CommandError(f"no {kind} configuration key contains {part!r}")
    if as_json:
        show_json(
            [
                {
                    "name": key.name,
                    "type": key.type.name.lower(),
                    "default": None if key.sensitive else key.default_text,
                    "status": key.status.value,
                    "dynamic": key.scope.value,
                    "importance": key.importance.name.lower(),
                    "doc": key.doc,
                }
                for key in keys
            ]
        )
        return
    show_table(
        ["KEY", "TYPE", "DEFAULT", "STATUS", "DYNAMIC", "WHAT IT IS"],
        [
            [key.name, key.type.name.lower(), key.default_text, key.status.value, key.scope.value, key.doc]
            for key in keys
        ],
    )
