"""`kwire log sizes`: how much lies where."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import cluster_options, format_option, open_client
from kwire.cli.output import show_json, show_table
from kwire.cli.running import run_async

if TYPE_CHECKING:
    from kwire.client.log_dirs import ReplicaSize
    from kwire.storage.inspection.remote_sizes import RemoteSize


class Size(NamedTuple):
    """A line of the report; None where it is not known, or several."""

    topic: str
    partition: int | None
    broker: int | None
    tier: str
    segments: int | None
    bytes: int
    other_bytes: int | None
    dir: str | None


@click.command("sizes", cls=Command)
@click.argument(
    "paths", cls=Argument, metavar="DIR", description="Log dirs, or partitions' folders.", nargs=-1, required=False
)
@click.option("--by", type=click.Choice(["partition", "topic"]), default="partition", help="What makes a line.")
@click.option("--sort", type=click.Choice(["size", "name"]), default="size", help="The order; the largest first.")
@format_option("JSON has the total too.")
@cluster_options
def sizes(paths: tuple[str, ...], by: str, sort: str, as_json: bool, bootstrap: str, timeout: float) -> None:
    """Shows how much the partitions take.

    Of the log dirs that are named, else of all brokers of the cluster. The
    size is that of the segments; the other files of a partition (indexes,
    snapshots) are counted apart, where the files can be looked at. What
    lies in remote storage is told by the records about it: all of a
    cluster's, or those in the dirs.
    """
    found = _of_dirs(paths) if paths else _of_cluster(bootstrap, timeout)
    if by == "topic":
        found = _by_topic(found)
    found.sort(key=lambda size: (-size.bytes if sort == "size" else 0, size.topic, size.partition or 0))
    total = sum(size.bytes for size in found)
    if as_json:
        show_json({"sizes": [size._asdict() for size in found], "total_bytes": total})
        return
    shown = _human if sys.stdout.isatty() else str
    columns = ["TOPIC", ">PARTITION", "TIER", ">BROKER", ">SEGMENTS", ">SIZE", ">OTHER FILES", "DIR"]
    rows = [
        [
            size.topic,
            size.partition,
            size.tier,
            size.broker,
            size.segments,
            shown(size.bytes),
            None if size.other_bytes is None else shown(size.other_bytes),
            size.dir,
        ]
        for size in found
    ]
    if sys.stdout.isatty() and len(rows) > 1:
        rows.append(["total", None, None, None, None, shown(total), None, None])
    kept = [number for number in range(len(columns)) if any(row[number] is not None for row in rows)]
    if not sys.stdout.isatty():  # whoever reads them by number shall find them there
        kept = list(range(len(columns)))
    show_table([columns[number] for number in kept], [[row[number] for number in kept] for row in rows])


def _of_dirs(paths: Sequence[str]) -> list[Size]:
    from kwire.ports.real_files import PosixFileSystem
    from kwire.storage.inspection.remote_sizes import remote_sizes
    from kwire.storage.inspection.sizes import partition_sizes

    files = PosixFileSystem()
    folders = [files.absolute(path) for path in paths]
    return [
        Size(each.topic, each.partition, None, each.tier, each.segments, each.log_bytes, each.other_bytes, each.log_dir)
        for folder in folders
        for each in partition_sizes(files, folder)
    ] + _remote(remote_sizes(files, folders))


def _of_cluster(bootstrap: str, timeout: float) -> list[Size]:
    from kwire.client.log_dirs import replica_sizes
    from kwire.client.remote_account import remote_account
    from kwire.storage.inspection.remote_sizes import sizes_of

    found: list[ReplicaSize] = []
    remote: list[RemoteSize] = []

    async def main() -> None:
        async with open_client(bootstrap, timeout) as client:
            found.extend(await replica_sizes(client))
            remote.extend(sizes_of(await remote_account(client)))

    run_async(main)
    return [
        Size(each.topic, each.partition, each.broker, "local", None, each.size, None, each.log_dir) for each in found
    ] + _remote(remote)


def _remote(found: Sequence[RemoteSize]) -> list[Size]:
    from kwire.storage.inspection.remote_sizes import REMOTE

    return [Size(each.topic, each.partition, None, REMOTE, each.segments, each.log_bytes, None, None) for each in found]


def _by_topic(found: Sequence[Size]) -> list[Size]:
    """One line for all partitions, replicas and dirs of a topic in a tier."""
    groups: dict[tuple[str, str], list[Size]] = {}
    for size in found:
        groups.setdefault((size.topic, size.tier), []).append(size)
    return [
        Size(
            topic,
            None,
            None,
            tier,
            _sum(size.segments for size in sizes),
            sum(size.bytes for size in sizes),
            _sum(size.other_bytes for size in sizes),
            None,
        )
        for (topic, tier), sizes in groups.items()
    ]


def _sum(numbers: Any) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _human(size: int) -> str:
    from kwire.cli.byte_sizes import human_bytes

    return human_bytes(size)
