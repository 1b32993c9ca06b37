"""`kwire import`: takes over the data of an Apache Kafka broker."""

from __future__ import annotations

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import format_option
from kwire.cli.running import CommandError


@click.command("import", cls=Command)
@click.argument(
    "paths",
    cls=Argument,
    metavar="DIR",
    description="All log.dirs of the stopped broker (and its metadata.log.dir).",
    nargs=-1,
    required=True,
)
@click.option(
    "--data-dir",
    metavar="DIR",
    multiple=True,
    default=["./kwire-data"],
    help="Where kwire is to keep the logs: new or empty; may be given several times.",
)
@click.option("--link", is_flag=True, help="Share sealed segments with the source by hard links, copy the rest.")
@click.option("--move", is_flag=True, help="Move the data: the source is left without them.")
@click.option("--skip-incomplete", is_flag=True, help="Leave out topics that are not wholly here.")
@click.option("--dry-run", is_flag=True, help="Only say what would come over.")
@format_option("Of the report.")
def import_command(
    paths: tuple[str, ...],
    data_dir: tuple[str, ...],
    link: bool,
    move: bool,
    skip_incomplete: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Takes over the data of an Apache Kafka broker.

    Of one that runs without ZooKeeper (KRaft) and is stopped, or was
    killed: topics with ids, configs and data, leader epochs, producers and
    transactions, groups with their offsets. What has no place in kwire is
    named in the report. The source is not touched unless --move says so,
    and nothing serves half of an import: if it was interrupted, run it
    again.
    """
    from kwire.cli.byte_sizes import human_bytes
    from kwire.cli.output import show_json
    from kwire.cli.progress import progress
    from kwire.cluster.adoption import AdoptionError
    from kwire.cluster.adoption.carrying import carry_out
    from kwire.cluster.adoption.marks import Mode
    from kwire.cluster.adoption.report import report_lines, report_values, serve_command
    from kwire.cluster.adoption.taking import plan_import
    from kwire.ports.randomness import SystemRandomness
    from kwire.ports.real_files import PosixFileSystem

    if link and move:
        raise CommandError("--link and --move: one of them", 2)
    files = PosixFileSystem()
    sources = [files.absolute(path) for path in paths]
    targets = [files.absolute(path) for path in data_dir]
    mode = Mode.MOVE if move else Mode.LINK if link else Mode.COPY
    try:
        plan = plan_import(files, sources, targets, mode, skip_incomplete=skip_incomplete)
        if not dry_run:
            with progress(plan.bytes, "importing") as advance:
                carry_out(files, plan, SystemRandomness().uuid, advance)
    except AdoptionError as error:
        raise CommandError(str(error)) from None
    if as_json:
        show_json({"dry_run": dry_run, **report_values(plan)})
        return
    for line in report_lines(plan, human_bytes):
        print(line)
    print(f"{'nothing was done; then' if dry_run else 'done;'} serve it with: {serve_command(plan)}")
