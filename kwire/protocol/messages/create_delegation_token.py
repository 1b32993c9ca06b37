"""CreateDelegationToken (API key 38): makes a delegation token."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT16, INT32, INT64, STRING, Array, Buffer


class CreatableRenewers(Struct):
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible_from=2):
    """The request, versions 1 to 3."""

    owner_principal_type: str | None = field(STRING, "3+", nullable="3+")
    owner_principal_name: str | None = field(STRING, "3+", nullable="3+")
    renewers: list[CreatableRenewers] = field(Array(CreatableRenewers), "0+")
    max_lifetime_ms: int = field(INT64, "0+")


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible_from=2):
    """The response, versions 1 to 3."""

    error_code: int = field(INT16, "0+")
    principal_type: str = field(STRING, "0+")
    principal_name: str = field(STRING, "0+")
    token_requester_principal_type: str = field(STRING, "3+")
    token_requester_principal_name: str = field(STRING, "3+")
    issue_timestamp_ms: int = field(INT64, "0+")
    expiry_timestamp_ms: int = field(INT64, "0+")
    max_timestamp_ms: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")
    hmac: Buffer = field(BYTES, "0+")
    throttle_time_ms: int = field(INT32, "0+")
