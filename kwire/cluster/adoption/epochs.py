"""The leader epochs in batches, which a topic that goes back to Apache Kafka begins anew."""

from __future__ import annotations

from itertools import zip_longest

from kwire.cluster.adoption import AdoptionError
from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.storage.inspection.batches import NoBatch, batches

_EPOCH_AT = 12
"""Where in a batch its leader epoch is."""
_FIRST_EPOCH = (0).to_bytes(4, "big")
_BEHIND = _EPOCH_AT + len(_FIRST_EPOCH)


def set_first_epoch(files: FileSystem, path: str) -> int | None:
    """Makes all batches of a segment those of epoch 0; returns the first one's offset. Raises AdoptionError."""
    first = None
    file = files.open(path)
    try:
        with open_input(path) as reading:
            for position, header, _ in batches(reading, file.size()):
                first = header.base_offset if first is None else first
                if header.leader_epoch:
                    file.pwrite([_FIRST_EPOCH], position + _EPOCH_AT)
    except NoBatch as error:
        raise AdoptionError(f"{path}: byte {error.position}: {error}: kwire log verify says more") from None
    finally:
        file.close()
    return first


def is_copy_in_first_epoch(files: FileSystem, path: str, original: str) -> bool:
    """Whether a segment is what `set_first_epoch` makes of a copy of the other one. Reads both."""
    size = files.file_size(original)
    if files.file_size(path) != size:
        return False
    with open_input(path) as file, open_input(original) as other:
        try:
            for found, wanted in zip_longest(batches(file, size), batches(other, size)):
                if found is None or wanted is None:
                    return False
                mine, theirs = found[2], wanted[2]
                if mine[:_EPOCH_AT] != theirs[:_EPOCH_AT] or mine[_BEHIND:] != theirs[_BEHIND:]:
                    return False
                if mine[_EPOCH_AT:_BEHIND] != _FIRST_EPOCH:
                    return False
        except NoBatch:
            return False
    return True
