"""AddOffsetsToTxn (API key 25): adds the offsets of a group to a transaction."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, INT32, INT64, STRING


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible_from=3):
    """The request, versions 0 to 4."""

    transactional_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    group_id: str = field(STRING, "0+")


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible_from=3):
    """The response, versions 0 to 4."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
