"""The file behind the embedded store: what it looks like, and how it is read after any kind of stop.

    kwire-metadata.journal     text, one JSON object a line, each line after its CRC-32C in eight hexadecimal digits:

        5e0c8d1a {"image":{"version":41,"cluster_id":…}}                 the whole metadata when the file was begun
        91c7b3f0 {"version":42,"commits":[[{"change":"TopicCreated",…}]]}   one write: commits 42 and following
        …

    kwire-metadata.clean       the size of the journal, written when the store was closed in order, removed at open

A write that was interrupted leaves a tail that makes no whole line: it was never acknowledged and is cut off. A damaged
line that is followed by good ones, or that is the last of a journal closed in order, is an error, and so is a journal
that is shorter than when it was closed in order: nothing is guessed.
When the journal has grown, a new one that holds only the image takes its place (in one step, by rename).

The files lie in the first log directory, where Apache Kafka's own log loading looks at folders only and passes by them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kwire.metadata.changes import Change, InvalidChange, apply
from kwire.metadata.image import MetadataImage
from kwire.metadata.text import change_from_json, change_to_json, image_from_json, image_to_json
from kwire.ports.files import FileSystem
from kwire.protocol.records.crc import crc32c

JOURNAL = "kwire-metadata.journal"
CLEAN = "kwire-metadata.clean"

_CRC_DIGITS = 8


class StoreError(Exception):
    """The metadata on disk cannot be used; the message is one line that names the file."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a journal's bytes amount to: the image, and where the last whole line ends (`end` <= the file's size)."""

    image: MetadataImage
    end: int


def image_line(image: MetadataImage) -> bytes:
    """The line a journal begins with."""
    return _line({"image": image_to_json(image)})


def commits_line(version: int, commits: Sequence[Sequence[Change]]) -> bytes:
    """The line for one write; `version` is that of the first of the commits."""
    return _line({"version": version, "commits": [[change_to_json(change) for change in each] for each in commits]})


def replay(path: str, data: bytes, *, closed_in_order: bool) -> Replay:
    """Reads a journal. Raises StoreError where it is damaged other than by an interrupted write at its end."""
    image: MetadataImage | None = None
    position = 0
    while position < len(data):
        end = data.find(b"\n", position) + 1
        text = _checked(data[position : end - 1]) if end else None
        if text is None:
            if image is None or closed_in_order or _any_whole_line(data, end):
                raise StoreError(f"{path} is damaged at byte {position}: put a backup in its place")
            break
        try:
            image = _apply_line(image, json.loads(text))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path} is not understood at byte {position}: {error}") from error
        position = end
    if image is None:
        raise StoreError(f"{path} is empty: put a backup in its place")
    return Replay(image, position)


def was_closed_in_order(files: FileSystem, directory: str, data: bytes) -> bool:
    """Whether the journal, whose bytes are `data`, is as it was closed in order.

    Raises StoreError where it was longer then: what was acknowledged is gone. Raises OSError.
    """
    mark = f"{directory}/{CLEAN}"
    if not files.exists(mark):
        return False
    text = files.read(mark).strip()
    if text.isdigit() and int(text) > len(data):
        raise StoreError(
            f"{directory}/{JOURNAL} has {len(data)} bytes, and had {int(text)} when it was closed in order: "
            f"put a backup in its place, and remove {CLEAN}"
        )
    return text == b"%d" % len(data)


def is_begun(path: str, data: bytes) -> bool:
    """Whether anything was ever committed to a journal. Raises StoreError as `replay` does, but not for all damage."""
    if data.count(b"\n") > 1:
        return True  # more than the line that it begins with: no need to read them
    return replay(path, data, closed_in_order=False).image.version > 0


def _apply_line(image: MetadataImage | None, values: dict[str, Any]) -> MetadataImage:
    if image is None:
        return image_from_json(values["image"])
    if values["version"] != image.version + 1:
        raise InvalidChange(f"version {values['version']} follows version {image.version}")
    for commit in values["commits"]:
        image = apply(image, [change_from_json(change) for change in commit])
    return image


def _any_whole_line(data: bytes, start: int) -> bool:
    """Whether a whole line follows the end of a damaged one; `start` is 0 where that has no end."""
    return bool(start) and any(_checked(line) is not None for line in data[start:].split(b"\n")[:-1])


def _line(values: dict[str, Any]) -> bytes:
    text = json.dumps(values, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(text), text)


def _checked(line: bytes) -> bytes | None:
    """The line's JSON; None where its CRC is not right."""
    text = line[_CRC_DIGITS + 1 :]
    if line[: _CRC_DIGITS + 1] != b"%08x " % crc32c(text):
        return None
    return text
