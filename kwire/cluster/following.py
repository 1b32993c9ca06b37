"""What a follower does with its copy: append what the leader sent, and cut off what the leader does not have.

All functions refuse (NOT_LEADER_OR_FOLLOWER) where the partition's role is not, or no longer, that of a follower in the
leader epoch for which the caller fetched: a change of role came in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.fetch_session import Position
from kwire.cluster.replica import NO_EPOCH
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log


def position(partition: Partition) -> Position:
    """Where the follower is: it fetches from its log's end."""
    log = partition.local_log(leader_only=False)
    latest = log.epochs.latest_epoch
    return Position(
        log.log_end_offset, NO_EPOCH if latest is None else latest, partition.leader_epoch, log.log_start_offset
    )


async def append(
    partition: Partition, leader_epoch: int, records: memoryview | None, high_watermark: int, log_start_offset: int
) -> None:
    """Takes over records, and the leader's high watermark and log start offset as far as this log goes.

    Raises what the log's append raises.
    """
    with _AsFollower(partition, leader_epoch) as log:
        if records:
            await _append(log, records, leader_epoch)
        # Never back: what one leader called committed is so, though the next one may not know it yet.
        moved = log.advance_high_watermark(min(high_watermark, log.log_end_offset))
        moved |= log.advance_log_start(min(log_start_offset, log.high_watermark))
    if moved or records:
        partition.changed()


async def _append(log: Log, records: memoryview, leader_epoch: int) -> None:
    from kwire.storage.log import UnexpectedAppendOffset

    try:
        await log.append_as_follower(records, leader_epoch)
    except UnexpectedAppendOffset as error:
        end = log.log_end_offset
        if end != log.log_start_offset or not error.first_offset < end <= error.last_offset:
            raise
        # The leader's log begins within this batch (records were deleted): an empty log may begin with the batch.
        log.truncate_fully_and_start_at(error.first_offset)
        await log.append_as_follower(records, leader_epoch)


def truncate(partition: Partition, leader_epoch: int, diverging: EpochEnd) -> int:
    """Cuts off what the leader does not have, as its fetch response says; returns the offset cut at."""
    with _AsFollower(partition, leader_epoch) as log:
        offset = truncation_offset(log, diverging)
        log.truncate_to(offset)
    partition.changed()
    return offset


def truncation_offset(log: Log, diverging: EpochEnd) -> int:
    """Up to where the histories can be the same (KIP-279): the leader has epoch `diverging.epoch` up to its end offset.

    Where this log does not know that epoch either, it goes back to the end of the one before it, and the next fetch
    tells more.
    """
    end = log.log_end_offset
    if diverging.end_offset == UNDEFINED_OFFSET:
        return log.high_watermark
    if diverging.epoch == UNDEFINED_EPOCH:
        return min(diverging.end_offset, end)
    mine = log.epochs.end_offset_for(diverging.epoch, end)
    if mine.epoch == UNDEFINED_EPOCH:
        return min(diverging.end_offset, end)
    if mine.epoch != diverging.epoch:
        return min(mine.end_offset, end)
    return min(mine.end_offset, diverging.end_offset, end)


def truncate_to(partition: Partition, leader_epoch: int, offset: int) -> None:
    """Cuts the log at `offset`."""
    with _AsFollower(partition, leader_epoch) as log:
        log.truncate_to(offset)
    partition.changed()


def start_at(partition: Partition, leader_epoch: int, offset: int) -> None:
    """Throws everything away; the log begins at `offset`, the leader's start."""
    with _AsFollower(partition, leader_epoch) as log:
        log.truncate_fully_and_start_at(offset)
    partition.changed()


class _AsFollower:
    """The log of a follower, whose role does not change meanwhile."""

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self._partition = partition
        self._leader_epoch = leader_epoch

    def __enter__(self) -> Log:
        partition = self._partition
        if partition.is_leader or partition.leader_epoch != self._leader_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition.name} is not followed in epoch {self._leader_epoch} now"
            )
        log = partition.local_log(leader_only=False)
        partition.hold_role()
        return log

    def __exit__(self, *_: object) -> None:
        self._partition.release_role()
