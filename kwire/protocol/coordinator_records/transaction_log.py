"""TransactionLog (record type 0 of __transaction_state): the state of a transactional id (KIP-98, KIP-890)."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, INT64, STRING, Array


class TransactionLogKey(Message, api_key=0, versions="0"):
    """The key."""

    transactional_id: str = field(STRING, "0")


class PartitionsSchema(Struct):
    topic: str = field(STRING, "0+")
    partition_ids: list[int] = field(Array(INT32), "0+")


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible_from=1):
    """The value, versions 0 and 1. Version 0 cannot carry what transaction version 2 needs, and refuses it."""

    producer_id: int = field(INT64, "0+")
    previous_producer_id: int = field(INT64, "1+", default=-1, tag=0)
    next_producer_id: int = field(INT64, "1+", default=-1, tag=1)
    producer_epoch: int = field(INT16, "0+")
    next_producer_epoch: int = field(INT16, "1+", default=-1, tag=3)
    transaction_timeout_ms: int = field(INT32, "0+")
    transaction_status: int = field(INT8, "0+")
    transaction_partitions: list[PartitionsSchema] | None = field(Array(PartitionsSchema), "0+", nullable="0+")
    transaction_last_update_timestamp_ms: int = field(INT64, "0+")
    transaction_start_timestamp_ms: int = field(INT64, "0+")
    client_transaction_version: int = field(INT16, "1+", tag=2)
