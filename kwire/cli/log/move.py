"""`kwire log move`: to another log dir of the same broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import PARTITION, cluster_options, open_client
from kwire.cli.running import CommandError, run_async

if TYPE_CHECKING:
    from kwire.client.client import Client

POLL_S = 0.2
"""Between two looks at how far the moves are."""


@click.command("move", cls=Command)
@click.argument("topic", cls=Argument, metavar="TOPIC", description="Name of the topic.")
@click.argument(
    "path", cls=Argument, metavar="DIR", description="The log dir to move to, as `kwire log dirs` names it."
)
@click.option("--partition", "-p", "partitions", type=PARTITION, multiple=True, metavar="N", help="Only these.")
@click.option("--broker", type=PARTITION, metavar="ID", help="Whose log dir it is, where there are several brokers.")
@click.option("--no-wait", is_flag=True, help="Return when the moves have begun.")
@cluster_options
def move(
    topic: str,
    path: str,
    partitions: tuple[int, ...],
    broker: int | None,
    no_wait: bool,
    bootstrap: str,
    timeout: float,
) -> None:
    """Moves a topic's partitions to another log dir of their broker.

    They are written and read meanwhile. What is moved to the dir where it is
    already stays there, which ends a move that is under way.
    """
    from kwire.client.log_dirs import move_replicas

    wanted = path.rstrip("/") or "/"  # as brokers name their dirs

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            whose = await _broker(client, wanted, broker)
            moved = list(partitions) or await _partitions(client, topic, whose)
            await move_replicas(client, whose, topic, moved, wanted)
            if not no_wait:
                await _until_there(client, whose, topic, moved, wanted)

    run_async(main)


async def _broker(client: Client, path: str, broker: int | None) -> int:
    """Whose dir it is."""
    from kwire.client.log_dirs import log_dirs

    if broker is not None:
        return broker
    having = sorted({found.broker for found in await log_dirs(client) if found.path == path})
    if not having:
        raise CommandError(f"no broker has the log dir {path}; `kwire log dirs` shows those there are")
    if len(having) > 1:
        raise CommandError(f"the brokers {', '.join(map(str, having))} have a log dir {path}: say which with --broker")
    return having[0]


async def _partitions(client: Client, topic: str, broker: int) -> list[int]:
    """Those of the topic that the broker has."""
    from kwire.client.log_dirs import replica_sizes

    here = {each.partition for each in await replica_sizes(client) if each.broker == broker and each.topic == topic}
    if not here:
        raise CommandError(f"broker {broker} has no partition of {topic!r}")
    return sorted(here)


async def _until_there(client: Client, broker: int, topic: str, partitions: list[int], path: str) -> None:
    import trio

    from kwire.client.log_dirs import replica_sizes

    while True:
        found = [
            each
            for each in await replica_sizes(client)
            if each.broker == broker and each.topic == topic and each.partition in partitions
        ]
        there = {each.partition for each in found if each.log_dir == path and not each.is_future}
        coming = {each.partition for each in found if each.log_dir == path and each.is_future}
        lost = sorted(set(partitions) - there - coming)
        if lost:
            names = ", ".join(f"{topic}-{number}" for number in lost)
            raise CommandError(f"{names} did not come to {path}: the log of the broker says why")
        if not coming:
            return
        await trio.sleep(POLL_S)
