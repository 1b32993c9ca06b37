"""`kwire log verify`: is all in the files of logs as it should be?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import format_option
from kwire.cli.running import CommandError

if TYPE_CHECKING:
    from kwire.storage.inspection.fault import Fault, Tally


@click.command("verify", cls=Command)
@click.argument(
    "paths", cls=Argument, metavar="DIR", description="Log dirs, or partitions' folders.", nargs=-1, required=True
)
@click.option("--deep", is_flag=True, help="Also unpack every batch and look at every record.")
@format_option("JSON is one object a line, the summary last.")
def verify(paths: tuple[str, ...], deep: bool, as_json: bool) -> None:
    """Checks the files of logs.

    Every batch (header, checksum, offsets), the indexes, aborted
    transactions, producers' snapshots, leader epochs, checkpoints and the
    metadata beside it, those of Apache Kafka as well. A fault is a line
    with file and byte, and makes the exit code 1. A note is a line, too: of
    what is odd, or what the next start puts right. Nothing is changed and
    nothing locked. While a broker is at work, only its batches can be
    looked at: the rest may change in between.
    """
    from kwire.cli.progress import clear_bar, progress
    from kwire.cluster.stores.inspection import inspect_journal
    from kwire.ports.real_files import PosixFileSystem
    from kwire.storage.inspection.fault import Findings
    from kwire.storage.inspection.log_dir import find, inspect

    def tell(fault: Fault) -> None:
        clear_bar()
        if as_json:
            _print_json({"fault" if fault.serious else "note": fault.text, "file": fault.path, "byte": fault.position})
        else:
            print(fault)

    files = PosixFileSystem()
    findings = Findings(tell)
    found = find(files, [files.absolute(path) for path in paths], findings)
    if not found.folders:
        raise CommandError(f"{', '.join(paths)}: no partitions there")
    for folder in found.in_use:
        findings.note(folder, None, "a broker is at work here: of all files only the batches are looked at")
    for folder in found.unclean:
        findings.note(folder, None, "not stopped cleanly: what the next start builds anew is not looked at")
    began = time.perf_counter()
    compacted = inspect_journal(files, found.log_dirs, [folder for folder, _ in found.folders], findings)
    with progress(found.bytes, "verifying") as findings.advance:
        inspect(files, found, findings, deep=deep, compacted=compacted)
    _summarize(findings.tally, time.perf_counter() - began, as_json)
    if findings.tally.faults:
        raise CommandError(f"{findings.tally.faults} fault{'s' * (findings.tally.faults > 1)} found")


def _summarize(tally: Tally, seconds: float, as_json: bool) -> None:
    from dataclasses import asdict

    from kwire.cli.byte_sizes import human_bytes

    if as_json:
        _print_json({"summary": asdict(tally) | {"seconds": round(seconds, 3)}})
        return
    print(
        f"{tally.partitions} partitions, {tally.segments} segments, {tally.batches} batches, {tally.records} records, "
        f"{human_bytes(tally.bytes)} in {seconds:.1f} s ({human_bytes(tally.bytes / max(seconds, 1e-9))}/s): "
        f"{tally.faults} faults, {tally.notes} notes"
    )


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False))
