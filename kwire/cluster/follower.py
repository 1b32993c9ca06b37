"""What a leader knows of one follower: how far it has fetched, and when it last was caught up (KIP-16).

A follower is caught up at time t if the offset of its newest fetch is not below what the leader's end offset was at t.
It need not ever reach the present end: one that keeps fetching under a steady load is as far as the leader was one
fetch ago.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
NEVER = -(1 << 62)
"""A time (ms, monotonic) before all others."""


class Follower:
    """One remote replica of a partition that this broker leads."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_ms",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_end_offset = UNKNOWN_OFFSET
        """The offset of its newest fetch: all below it is in its log."""
        self.log_start_offset = UNKNOWN_OFFSET
        self.leader_end_at_fetch = UNKNOWN_OFFSET
        """The leader's end offset at the newest fetch."""
        self.fetched_ms = NEVER
        self.caught_up_ms = NEVER
        self.broker_epoch: int | None = None
        """The epoch its newest fetch carried; -1 where that had none."""

    def reset(self, *, new_leader: bool, in_sync: bool, leader_end_offset: int, now_ms: int) -> None:
        """Begins a leader epoch: a replica of the ISR counts as caught up now, any other has to show it.

        What is known of its offsets is kept only where the leader stays the same.
        """
        self.caught_up_ms = now_ms if in_sync else NEVER
        if new_leader:
            self.log_end_offset = self.log_start_offset = self.leader_end_at_fetch = UNKNOWN_OFFSET
            self.fetched_ms = NEVER
            self.broker_epoch = None
        else:
            self.leader_end_at_fetch = leader_end_offset
            self.fetched_ms = now_ms if in_sync else NEVER

    def fetched(
        self, offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int, broker_epoch: int
    ) -> None:
        """Records a fetch from `offset`, made at `now_ms`, when the leader's log ended at `leader_end_offset`."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = max(self.leader_end_at_fetch, leader_end_offset)
        self.fetched_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it is at the leader's end, or was caught up within the last `max_lag_ms`."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= max_lag_ms
