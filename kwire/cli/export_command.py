"""`kwire export`: puts topics into the data of an Apache Kafka broker."""

from __future__ import annotations

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.running import CommandError


@click.command("export", cls=Command)
@click.argument("topics", cls=Argument, metavar="TOPIC", description="Names of topics.", nargs=-1, required=True)
@click.option(
    "--data-dir", metavar="DIR", multiple=True, default=["./kwire-data"], help="All data dirs of kwire, in its order."
)
@click.option("--to", metavar="DIR", multiple=True, required=True, help="All log.dirs of the Apache Kafka broker.")
@click.option("--dry-run", is_flag=True, help="Only say whether it can be done.")
def export_command(topics: tuple[str, ...], data_dir: tuple[str, ...], to: tuple[str, ...], dry_run: bool) -> None:
    """Puts topics into the data of an Apache Kafka broker.

    Both are stopped. The topics were created there, with as many
    partitions and one replica, and are still empty; they get the records
    with their offsets and times, what was aborted included. Which producer
    wrote what last is forgotten, and groups' offsets stay behind. If it was
    interrupted, run it again.
    """
    from kwire.cli.byte_sizes import human_bytes
    from kwire.cli.progress import progress
    from kwire.cluster.adoption import AdoptionError
    from kwire.cluster.adoption.returning import put_back
    from kwire.cluster.adoption.taking import plan_export
    from kwire.ports.randomness import SystemRandomness
    from kwire.ports.real_files import PosixFileSystem

    files = PosixFileSystem()
    data_dirs = [files.absolute(path) for path in data_dir]
    try:
        returns = plan_export(files, data_dirs, topics, [files.absolute(path) for path in to])
        missing = [each for each in returns if not each.there]
        size = sum(each.bytes for each in missing)
        if not dry_run:
            with progress(size, "exporting") as advance:
                put_back(files, data_dirs, returns, SystemRandomness().uuid, advance)
    except AdoptionError as error:
        raise CommandError(str(error)) from None
    for each in returns:
        what = "is there already, in" if each.there else f"{human_bytes(each.bytes)} to"
        print(f"{each.key[0]}-{each.key[1]}: {what} {each.target.path}")
    print(f"{len(missing)} partitions, {human_bytes(size)}" + (": nothing was done yet" if dry_run else ""))
