"""PartitionRecord (3) and PartitionChangeRecord (5): who has a partition's replicas, who leads, in which epoch."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT8, INT32, UUID, Array

NO_LEADER_CHANGE = -2
"""`PartitionChangeRecord.leader` where the leader and its epoch stay."""


class PartitionRecord(Message, api_key=3, versions="0-2", flexible_from=0):
    """A partition, or in a snapshot its whole state. Version 1 adds the log dirs (KIP-858), 2 the ELR (KIP-966)."""

    partition_id: int = field(INT32, "0+", default=-1)
    topic_id: bytes = field(UUID, "0+")
    replicas: list[int] = field(Array(INT32), "0+")
    isr: list[int] = field(Array(INT32), "0+")
    removing_replicas: list[int] = field(Array(INT32), "0+")
    adding_replicas: list[int] = field(Array(INT32), "0+")
    leader: int = field(INT32, "0+", default=-1)
    leader_recovery_state: int = field(INT8, "0+", tag=0)
    leader_epoch: int = field(INT32, "0+", default=-1)
    partition_epoch: int = field(INT32, "0+", default=-1)
    directories: list[bytes] = field(Array(UUID), "1+")
    eligible_leader_replicas: list[int] | None = field(Array(INT32), "2+", nullable="2+", default=None, tag=1)
    last_known_elr: list[int] | None = field(Array(INT32), "2+", nullable="2+", default=None, tag=2)


class PartitionChangeRecord(Message, api_key=5, versions="0-2", flexible_from=0):
    """What changed of a partition; null, or NO_LEADER_CHANGE, or a recovery state of -1, stands for what did not."""

    partition_id: int = field(INT32, "0+", default=-1)
    topic_id: bytes = field(UUID, "0+")
    isr: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None, tag=0)
    leader: int = field(INT32, "0+", default=NO_LEADER_CHANGE, tag=1)
    replicas: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None, tag=4)
    leader_recovery_state: int = field(INT8, "0+", default=-1, tag=5)
    directories: list[bytes] | None = field(Array(UUID), "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = field(Array(INT32), "2+", nullable="2+", default=None, tag=6)
    last_known_elr: list[int] | None = field(Array(INT32), "2+", nullable="2+", default=None, tag=7)
