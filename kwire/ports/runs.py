"""What is sent at once, as far as it goes into one call of the system."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.ports.files import Buffer, FileSlice
from kwire.ports.transport import Part, Streamed

BUFFERS = (bytes, bytearray, memoryview)


def runs_of(parts: Sequence[Part]) -> list[list[Buffer] | FileSlice | Streamed]:
    """Parts grouped into runs of buffers, file slices, what is streamed; empty ones left out."""
    runs: list[list[Buffer] | FileSlice | Streamed] = []
    run: list[Buffer] = []
    for part in parts:
        if not len(part):
            continue
        if isinstance(part, BUFFERS):
            run.append(part)
        else:
            if run:
                runs.append(run)
                run = []
            runs.append(part)
    if run:
        runs.append(run)
    return runs


def rest_of(buffers: list[Buffer], sent: int) -> list[Buffer]:
    """What is left of the buffers after their first `sent` bytes."""
    index = 0
    while index < len(buffers) and sent >= len(buffers[index]):
        sent -= len(buffers[index])
        index += 1
    rest = buffers[index:]
    if sent:
        rest[0] = memoryview(rest[0])[sent:]
    return rest
