"""ExpireDelegationToken (API key 40): changes when a delegation token expires, or ends it at once."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BYTES, INT16, INT32, INT64, Buffer


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible_from=2):
    """The request, versions 1 to 2."""

    hmac: Buffer = field(BYTES, "0+")
    expiry_time_period_ms: int = field(INT64, "0+")


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible_from=2):
    """The response, versions 1 to 2."""

    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")
