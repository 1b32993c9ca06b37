"""`kwire log dump`: what is in the files of a log."""

from __future__ import annotations

import sys
from typing import Any

import click

from kwire.cli.commands import Argument, Command
from kwire.cli.options import format_option
from kwire.cli.running import CommandError


@click.command("dump", cls=Command)
@click.argument("paths", cls=Argument, metavar="PATH", description="Files or folders.", nargs=-1, required=True)
@click.option("--records", "-r", is_flag=True, help="Also the records of each batch, those of internal topics decoded.")
@format_option("JSON is one object a line.")
def dump(paths: tuple[str, ...], records: bool, as_json: bool) -> None:
    """Shows what is in the files of a log.

    Segments, their indexes, producer snapshots, checkpoints, and snapshots
    of a KRaft controller. A folder is that of a partition, or one of such
    folders. Checksums are checked; damage makes the exit code 1.
    """
    from kwire.cli.log.contents import Damage, dump_file, files_in
    from kwire.ports.real_files import PosixFileSystem

    show = _show_json if as_json else _show_text
    system = PosixFileSystem()
    damaged = []
    for path in paths:
        names = list(files_in(system, path))
        if not names:
            raise CommandError(f"{path}: no files of a log there")
        for name in names:
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
        if isinstance(value, dict):
            return {name: plain(content) for name, content in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    print(json.dumps({name: plain(value) for name, value in line.items()}, ensure_ascii=False))


def _text(value: Any) -> str:
    """Bytes as a Python literal without its b, null for None, false and true in lower case."""
    if isinstance(value, bytes):
        return repr(value)[1:]
    if isinstance(value, tuple):  # a header
        return f"{value[0]}: {_text(value[1])}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(content)}" for name, content in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
