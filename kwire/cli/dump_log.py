"""`kwire dump-log`: what is in the files of a log."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from kwire.cli.output import Format
from kwire.cli.running import CommandError


def dump_log(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files or folders.", show_default=False)],
    records: Annotated[bool, typer.Option("--records", "-r", help="Also the records of each batch.")] = False,
    format: Annotated[Format, typer.Option("--format", help="JSON is one object a line.")] = Format.TEXT,
) -> None:
    """Shows what is in the files of a log.

    Segments, their indexes, producer snapshots and checkpoints; those of
    Apache Kafka as well. A folder is that of a partition, or one of such
    folders. Checksums are checked; damage makes the exit code 1.
    """
    from kwire.cli.log_files import Damage, dump_file, files_in
    from kwire.ports.real_files import PosixFileSystem

    show = _show_json if format is Format.JSON else _show_text
    system = PosixFileSystem()
    damaged = []
    for path in paths:
        for name in files_in(system, path):
            show({"file": name})
            try:
                for line in dump_file(system, name, records):
                    show(line)
            except Damage as damage:
                show({"damage": str(damage)})
                damaged.append(name)
    sys.stdout.flush()
    if damaged:
        raise CommandError(f"damaged: {', '.join(damaged)}")


def _show_text(line: dict[str, Any]) -> None:
    if "file" in line:
        print(line["file"])
    else:
        indent = "    " if "record" in line else "  "
        print(indent + " ".join(f"{name}={_text(value)}" for name, value in line.items()))


def _show_json(line: dict[str, Any]) -> None:
    import json

    from kwire.cli.formats import json_text

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return json_text(value)
        return [[name, json_text(content)] for name, content in value] if isinstance(value, list) else value

    print(json.dumps({name: plain(value) for name, value in line.items()}, ensure_ascii=False))


def _text(value: Any) -> str:
    """Bytes as a Python literal without its b, null for None, false and true in lower case."""
    if isinstance(value, bytes):
        return repr(value)[1:]
    if isinstance(value, list):
        return "[" + ", ".join(f"{name}: {_text(content)}" for name, content in value) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
