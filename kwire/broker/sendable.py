"""What a fetch found, in the form in which it is sent: nothing of it waits for the disk on the event loop."""

from __future__ import annotations

from kwire.ports.executor import Executor
from kwire.ports.files import SMALL_SLICE_BYTES, Buffer, FileSlice
from kwire.ports.transport import Streamed


def sendable_at_once(part: FileSlice, *, just_read: bool = False) -> FileSlice | Buffer | None:
    """As `sendable`, but None where that waits for the disk. Raises OSError."""
    if part.size <= SMALL_SLICE_BYTES:
        return part.file.read_resident(part.size, part.position)
    return part if just_read or part.file.resident(part.position, part.size) else None


async def sendable(
    executor: Executor, part: FileSlice | Streamed, *, just_read: bool = False
) -> FileSlice | Streamed | Buffer:
    """The slice itself if all of it is in memory, its bytes where it is small or cold; what is streamed as it is.

    `just_read`: whether the log was asked for it in the same turn or nearly so, and so told that it is in memory.
    Nothing where the log was cut off meanwhile: half a batch would be taken for a fault. Raises OSError.
    """
    if not isinstance(part, FileSlice):
        return part
    found = sendable_at_once(part, just_read=just_read)
    if found is not None:
        return found
    data = await executor.run(part.read)
    return data if len(data) == part.size else b""
