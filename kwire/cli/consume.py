"""`kwire consume`: records of a topic to standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import COUNT, PARTITION, cluster_options, open_client, read_option
from kwire.cli.output import write_bytes
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.cli.positions import Range
    from kwire.client.client import Client
    from kwire.client.consumer import ConsumedRecord, Consumer
    from kwire.client.offsets import Isolation

DEFAULT_FORMAT = r"%s\n"


@click.command("consume", cls=Command)
@click.argument("topic", cls=Argument, metavar="TOPIC", description="The topic to read.")
@click.option(
    "--partition",
    "-p",
    "partitions",
    type=PARTITION,
    multiple=True,
    metavar="N",
    help="Only this partition; may be given several times.",
)
@click.option(
    "--offset",
    "-o",
    "offsets",
    multiple=True,
    metavar="WHERE",
    show_default="beginning",
    help="Where to begin: beginning, end, an OFFSET, -COUNT (so many before the end of each partition), or s@TIME; "
    "and where to stop: e@TIME. TIME is ms since the epoch or like 2026-01-31T12:00 (UTC).",
)
@click.option(
    "--group",
    "-G",
    metavar="GROUP",
    help="Share the topic with the other members of this consumer group, go on where it is, and commit what was "
    "printed. --offset, beginning or end, is for partitions that it has not read yet.",
)
@click.option("--count", "-c", type=COUNT, metavar="N", help="Stop after so many records.")
@click.option(
    "--exit",
    "-e",
    "exit_at_end",
    is_flag=True,
    help="Stop at the end of the topic, as it is when the command starts.",
)
@click.option(
    "--format",
    "-f",
    metavar="FORMAT",
    default=DEFAULT_FORMAT,
    help="What to print of a record: %s value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp, "
    "%S and %K lengths of value and key (-1: null), %R the length in 4 bytes, \\n \\r \\t \\xNN.",
)
@click.option(
    "--json", "-J", "as_json", is_flag=True, help="A JSON object on a line for each record, instead of a format."
)
@click.option(
    "--isolation",
    metavar="LEVEL",
    default="read_uncommitted",
    help="read_uncommitted or read_committed (transactions).",
)
@cluster_options
def consume(
    topic: str,
    partitions: tuple[int, ...],
    offsets: tuple[str, ...],
    group: str | None,
    count: int | None,
    exit_at_end: bool,
    format: str,
    as_json: bool,
    isolation: str,
    bootstrap: str,
    timeout: float,
) -> None:
    """Prints the records of a topic.

    From the beginning unless told otherwise; then it waits for more.
    """
    from kwire.cli.formats import compile_format, to_json
    from kwire.cli.positions import BEGINNING, END, parse_range
    from kwire.client.offsets import Isolation

    levels = {level.name.lower(): level for level in Isolation}
    if isolation not in levels:
        raise CommandError(f"--isolation {isolation}: must be one of {', '.join(levels)}", MISUSED)
    render = to_json if as_json else read_option("--format", format, compile_format)
    wanted = read_option("--offset", offsets, parse_range)

    if group is not None and (partitions or wanted.start not in (BEGINNING, END) or wanted.before is not None):
        raise CommandError("with --group there is no --partition, and only beginning or end as --offset", MISUSED)

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            if group is not None:
                from kwire.cli.consume_in_group import consume_in_group

                first = str(wanted.start)
                await consume_in_group(client, group, topic, first, exit_at_end, count, render, levels[isolation])
                return
            await _consume(client, topic, partitions, wanted, exit_at_end, count, render, levels[isolation])

    run_async(main)


async def _consume(
    client: Client,
    topic: str,
    numbers: Sequence[int],
    wanted: Range,
    exit_at_end: bool,
    count: int | None,
    render: Callable[[ConsumedRecord], bytes],
    isolation: Isolation,
) -> None:
    from kwire.cli.positions import resolve_end, resolve_start
    from kwire.client.consumer import Consumer
    from kwire.client.metadata import unknown_partition

    known = (await client.topic(topic)).partitions
    for number in numbers:
        if number not in known:
            raise unknown_partition(topic, number)
    partitions = [(topic, number) for number in numbers or known]
    starts = await resolve_start(client, partitions, wanted, isolation)
    ends = await resolve_end(client, partitions, wanted, exit_at_end, isolation)
    consumer = Consumer(client, isolation=isolation)
    await consumer.assign(starts)
    left = count
    while left != 0:
        unassign_finished(consumer, ends)
        if not consumer.positions:
            return
        records = await consumer.poll()
        if ends is not None:
            records = [record for record in records if record.offset < ends[record.topic, record.partition]]
        if left is not None:
            records = records[:left]
            left -= len(records)
        if records:
            write_bytes(b"".join(map(render, records)))


def unassign_finished(consumer: Consumer, ends: dict[tuple[str, int], int] | None) -> None:
    """Reads no partition beyond its end."""
    for partition, position in list(consumer.positions.items()):
        if ends is not None and position >= ends[partition]:
            consumer.unassign(partition)
