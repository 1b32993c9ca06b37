"""A process that is killed while it appends: what it acknowledged is there afterwards, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.ports.real_files import PosixFileSystem

from .support import Place, read_all

WRITER = """
import sys
from kwire.ports.real_files import PosixFileSystem
from tests.storage.support import DirectExecutor, Place, append, run

place = Place(PosixFileSystem(), sys.argv[1], segment_bytes=20_000, index_interval_bytes=500)
place.executor = DirectExecutor()
log = place.open(clean=False)
while True:
    offset = log.log_end_offset
    run(append, log, *[f"{offset + i}" for i in range(offset % 7 + 1)])
    if offset % 5 == 0:
        run(place.services.chores.finish_due)
    print(log.log_end_offset, flush=True)
"""


def acknowledged_until_killed(folder: Path, enough: int) -> int:
    """Runs the writer until it has acknowledged so much, kills it, and returns the end of what it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    end = 0
    while end < enough:
        end = int(writer.stdout.readline())
    writer.kill()
    rest, _ = writer.communicate()
    return max([end, *(int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n"))])


@pytest.mark.parametrize("count", [1, 300, 2000])
async def test_kill_9(tmp_path, count):
    end = 0
    for _ in range(2):  # the second time on what the first left
        acknowledged = acknowledged_until_killed(tmp_path, end + count)
        log = Place(PosixFileSystem(), str(tmp_path), segment_bytes=20_000, index_interval_bytes=500).open(clean=False)
        end = log.log_end_offset
        assert end >= acknowledged
        assert read_all(log) == [(offset, str(offset)) for offset in range(end)]
        await log.close()
