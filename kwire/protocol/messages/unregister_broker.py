"""UnregisterBroker (API key 64): removes a broker that will not come back."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, INT32, STRING


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible_from=0):
    """The request, version 0."""

    broker_id: int = field(INT32, "0+")


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
