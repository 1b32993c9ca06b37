"""Which record of __consumer_offsets changes what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.records import replay_group
from kwire.coordinator.groups.consumer.replay import REPLAY as CONSUMER_REPLAY
from kwire.coordinator.groups.offsets.records import replay_offset
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Producer
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataKey
from kwire.protocol.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey
from kwire.protocol.coordinator_records.offset_commit import OffsetCommitKey
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

Replay = Callable[["GroupMachine", CoordinatorRecord, Producer | None], None]

REPLAY: dict[type[Message], Replay] = {
    LegacyOffsetCommitKey: replay_offset,
    OffsetCommitKey: replay_offset,
    GroupMetadataKey: replay_group,
    **CONSUMER_REPLAY,
}
