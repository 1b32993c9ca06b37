"""InitProducerId (API key 22): gives a producer its id and epoch."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, INT32, INT64, STRING


class InitProducerIdRequest(Message, api_key=22, versions="0-5", flexible_from=2):
    """The request, versions 0 to 5."""

    transactional_id: str | None = field(STRING, "0+", nullable="0+")
    transaction_timeout_ms: int = field(INT32, "0+")
    producer_id: int = field(INT64, "3+", default=-1)
    producer_epoch: int = field(INT16, "3+", default=-1)


class InitProducerIdResponse(Message, api_key=22, versions="0-5", flexible_from=2):
    """The response, versions 0 to 5."""

    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    error_code: int = field(INT16, "0+")
    producer_id: int = field(INT64, "0+", default=-1)
    producer_epoch: int = field(INT16, "0+")
