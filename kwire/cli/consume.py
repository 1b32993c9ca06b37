"""`kwire consume`: records of a topic to standard output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli.options import DEFAULT_BOOTSTRAP, DEFAULT_TIMEOUT, Bootstrap, Timeout, open_client
from kwire.cli.output import write_bytes
from kwire.cli.running import MISUSED, CommandError, run_async

if TYPE_CHECKING:
    from kwire.cli.positions import Range
    from kwire.client.client import Client
    from kwire.client.consumer import ConsumedRecord, Consumer
    from kwire.client.offsets import Isolation

DEFAULT_FORMAT = r"%s\n"


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.", show_default=False)],
    partition: Annotated[
        list[int],
        typer.Option("--partition", "-p", metavar="N", help="Only this partition; may be given several times."),
    ] = [],  # noqa: B006  (Typer's way to say "none")
    offset: Annotated[
        list[str],
        typer.Option(
            "--offset",
            "-o",
            metavar="WHERE",
            help="Where to begin: beginning, end, an OFFSET, -COUNT (so many before the end of each partition), or "
            "s@TIME; and where to stop: e@TIME. TIME is ms since the epoch or like 2026-01-31T12:00 (UTC).",
            show_default="beginning",
        ),
    ] = [],  # noqa: B006
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, metavar="N", help="Stop after so many records.")
    ] = None,
    exit_at_end: Annotated[
        bool, typer.Option("--exit", "-e", help="Stop at the end of the topic, as it is when the command starts.")
    ] = False,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="What to print of a record: %s value, %k key, %h headers, %t topic, %p partition, %o offset, "
            "%T timestamp, %S and %K lengths of value and key (-1: null), %R the length in 4 bytes, \\n \\r \\t \\xNN.",
        ),
    ] = DEFAULT_FORMAT,
    json: Annotated[
        bool, typer.Option("--json", "-J", help="A JSON object on a line for each record, instead of a format.")
    ] = False,
    isolation: Annotated[
        str,
        typer.Option("--isolation", metavar="LEVEL", help="read_uncommitted or read_committed (transactions)."),
    ] = "read_uncommitted",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Prints the records of a topic.

    From the beginning unless told otherwise; then it waits for more.
    """
    from kwire.cli.formats import compile_format, to_json
    from kwire.cli.positions import parse_range
    from kwire.client.offsets import Isolation

    levels = {level.name.lower(): level for level in Isolation}
    if isolation not in levels:
        raise CommandError(f"--isolation {isolation}: must be one of {', '.join(levels)}", MISUSED)
    try:
        render = to_json if json else compile_format(format)
        wanted = parse_range(offset)
    except ValueError as error:
        raise CommandError(str(error), MISUSED) from None

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            await _consume(client, topic, partition, wanted, exit_at_end, count, render, levels[isolation])

    run_async(main)


async def _consume(
    client: Client,
    topic: str,
    numbers: list[int],
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
        _unassign_finished(consumer, ends)
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


def _unassign_finished(consumer: Consumer, ends: dict[tuple[str, int], int] | None) -> None:
    for partition, position in list(consumer.positions.items()):
        if ends is not None and position >= ends[partition]:
            consumer.unassign(partition)
