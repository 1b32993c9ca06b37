"""DescribeTransactions (API key 65): tells the state of transactional ids."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, Array


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible_from=0):
    """The request, version 0."""

    transactional_ids: list[str] = field(Array(STRING), "0+")


class TopicData(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class TransactionState(Struct):
    error_code: int = field(INT16, "0+")
    transactional_id: str = field(STRING, "0+")
    transaction_state: str = field(STRING, "0+")
    transaction_timeout_ms: int = field(INT32, "0+")
    transaction_start_time_ms: int = field(INT64, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    topics: list[TopicData] = field(Array(TopicData), "0+")


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    transaction_states: list[TransactionState] = field(Array(TransactionState), "0+")
