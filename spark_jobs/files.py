"""Files that a job reads: which there are, in what format, how many bytes; and which of them Spark has read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_jobs import globs
from spark_jobs.faults import Fault

FORMATS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".txt": "text",
    ".log": "text",
}
"""By the ending of a name, where `.gz` does not count."""

_IN_A_PATTERN = re.compile(r"([\\{}\[\]*?])")
_IN_BRACES = re.compile(r"([\\{},])")


def sizes(paths: Sequence[Path], names: str | None) -> dict[Path, int]:
    """The bytes of each file at these paths, with those in folders of folders, as Spark finds them: it leaves out
    what begins with a dot or an underscore. Raises Fault where a path itself does, or where `names` is no pattern."""
    wanted = globs.compiled("*" if names is None else names)
    found = {}
    for path in paths:
        path = path.resolve()
        if path.is_file() and _hidden(path.name):
            raise Fault(f"Spark reads no file whose name begins with a dot or an underscore: {path}")
        for file in [path] if path.is_file() else path.rglob("*"):
            shown = path == file or not any(map(_hidden, file.relative_to(path).parts))
            if shown and file.is_file() and wanted.fullmatch(file.name):
                found[file] = file.stat().st_size
    return found


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def guessed_format(files: Mapping[Path, int]) -> str:
    """What the names of all these files say. Raises Fault where they say different things, or nothing."""
    by_format: dict[str | None, Path] = {}
    for file in files:
        name = file.name.removesuffix(".gz")
        by_format.setdefault(FORMATS.get(Path(name).suffix.lower()), file)
    if not by_format:
        raise Fault("there is no file yet to guess the format from: give --format")
    if None in by_format:
        raise Fault(f"the name of {by_format[None]} does not say what it is: give --format, or --names")
    if len(by_format) > 1:
        examples = ", ".join(f"{file.name} ({kind})" for kind, file in by_format.items())
        raise Fault(f"the files are of several formats: {examples}; choose some with --names, or give --format")
    (only,) = by_format
    return str(only)


def pattern(paths: Sequence[Path]) -> str:
    """One pattern, as Hadoop has them, that stands for all these paths: a stream of files takes no more than one."""
    # Hadoop first makes several patterns of one, and takes away the backslashes in the braces.
    patterns = (_IN_A_PATTERN.sub(r"\\\1", str(path.resolve()).lstrip("/")) for path in paths)
    return "/{" + ",".join(_IN_BRACES.sub(r"\\\1", each) for each in patterns) + "}"


class ReadFiles:
    """The files that a stream has read, by the log that Spark keeps of them in its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "sources" / "0"
        self._known = -1
        self._files: set[Path] = set()

    def until(self, number: int) -> set[Path]:
        """Those in the log up to this number: the `logOffset` where a batch ended."""
        for log in self._folder.glob("*"):
            name = log.name.removesuffix(".compact")
            if name.isdigit() and self._known < int(name) <= number:
                self._files.update(_entries(log))
        self._known = max(self._known, number)
        return self._files


def _entries(log: Path) -> Iterator[Path]:
    """A line with the version of the log, then an object for each file."""
    for line in log.read_text().splitlines()[1:]:
        yield Path(unquote(urlsplit(json.loads(line)["path"]).path))
