"""SaslAuthenticate (API key 36): carries one step of a SASL exchange."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BYTES, INT16, INT64, STRING, Buffer


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible_from=2):
    """The request, versions 0 to 2."""

    auth_bytes: Buffer = field(BYTES, "0+")


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible_from=2):
    """The response, versions 0 to 2."""

    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    auth_bytes: Buffer = field(BYTES, "0+")
    session_lifetime_ms: int = field(INT64, "1+", ignorable=True)
