"""A log dir on a disk, as a broker leaves it: several segments, epochs, producers, transactions, a clean stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kwire.ports.real_files import PosixFileSystem
from kwire.storage.inspection.fault import Fault, Findings, Tally
from kwire.storage.inspection.log_dir import find, inspect
from tests.storage.support import (
    CLUSTER,
    TOPIC_ID,
    ManualClock,
    append,
    config,
    end_transaction,
    idempotent,
    manager,
)


async def build(folder: Path, *, clean: bool = True) -> Path:
    """The log dir; the folder of its one partition is `t-0`."""
    clock = ManualClock()
    managed = manager(PosixFileSystem(), clock, [str(folder)], transaction_partition_verification_enable="false")
    await managed.lock()
    await managed.load(CLUSTER, 1, lambda topic: config())
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(segment_bytes=1500))
    for epoch in (0, 2):
        for number in range(10):
            clock.advance(10)
            await append(log, f"{epoch}-{number}" + "x" * 60, epoch=epoch, timestamp=clock.now)
        await log.append_as_leader(idempotent(["a"], epoch // 2, producer=5), epoch)
        for producer in (7, 8):
            await log.append_as_leader(idempotent(["c"], epoch // 2, producer, transactional=True), epoch)
        await end_transaction(log, 7, commit=False, epoch=epoch)
        await end_transaction(log, 8, commit=epoch == 0, epoch=epoch)
    if clean:
        await managed.close(7)
    managed.unlock()
    return folder


def looked_through(*paths: Path, deep: bool = False, compacted: Sequence[str] = ()) -> tuple[list[Fault], Tally]:
    """What is found in log dirs or partitions' folders."""
    told: list[Fault] = []
    files = PosixFileSystem()
    findings = Findings(told.append)
    inspect(files, find(files, [str(path) for path in paths], findings), findings, deep=deep, compacted=compacted)
    return told, findings.tally
