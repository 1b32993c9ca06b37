"""EndTxn (API key 26): commits or aborts a transaction."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BOOL, INT16, INT32, INT64, STRING


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible_from=3):
    """The request, versions 0 to 5."""

    transactional_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    committed: bool = field(BOOL, "0+")


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible_from=3):
    """The response, versions 0 to 5."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    producer_id: int = field(INT64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(INT16, "5+", default=-1, ignorable=True)
