"""`kwire config`: the table of every configuration key."""

from __future__ import annotations

from typing import Annotated

import typer

from kwire.cli.output import Format, show_json, show_table
from kwire.cli.running import MISUSED, CommandError


def config(
    filter: Annotated[
        str,
        typer.Argument(metavar="KEY", help="Only keys that contain this, such as retention.", show_default=False),
    ] = "",
    describe: Annotated[bool, typer.Option("--describe", help="List the keys and what kwire does with each.")] = False,
    topic: Annotated[bool, typer.Option("--topic", help="The keys of topics instead of those of brokers.")] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print them.")] = Format.TEXT,
) -> None:
    """Lists the configuration keys of brokers or topics.

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
    from kwire.config.keys import BROKER_KEYS
    from kwire.config.topic_keys import TOPIC_KEYS

    table = TOPIC_KEYS if topic else BROKER_KEYS
    keys = [key for name, key in sorted(table.items()) if filter in name and not key.internal]
    if not keys:
        raise CommandError(f"no {'topic' if topic else 'broker'} configuration key contains {filter!r}")
    if format is Format.JSON:
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
