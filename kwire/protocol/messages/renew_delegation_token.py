"""RenewDelegationToken (API key 39): lets a delegation token live longer."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BYTES, INT16, INT32, INT64, Buffer


class RenewDelegationTokenRequest(Message, api_key=39, versions="1-2", flexible_from=2):
    """The request, versions 1 to 2."""

    hmac: Buffer = field(BYTES, "0+")
    renew_period_ms: int = field(INT64, "0+")


class RenewDelegationTokenResponse(Message, api_key=39, versions="1-2", flexible_from=2):
    """The response, versions 1 to 2."""

    error_code: int = field(INT16, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    throttle_time_ms: int = field(INT32, "0+")
