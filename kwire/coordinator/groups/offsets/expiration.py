"""When committed offsets expire (KIP-211)."""

from __future__ import annotations

from typing import NamedTuple

from kwire.coordinator.groups.offsets.offsets import CommittedOffset


class OffsetExpiration(NamedTuple):
    """`since_ms`: the wall time from which `offsets.retention.minutes` count; None: from each offset's commit."""

    since_ms: int | None

    def has_expired(self, offset: CommittedOffset, wall_ms: int, retention_ms: int) -> bool:
        """An offset committed with a retention of its own (OffsetCommit v2 to v4) expires by that."""
        if offset.expires_ms is not None:
            return wall_ms >= offset.expires_ms
        since = offset.committed_ms if self.since_ms is None else self.since_ms
        return wall_ms - since >= retention_ms
