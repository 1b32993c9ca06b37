"""DescribeUserScramCredentials (API key 50): tells which SCRAM mechanisms users have."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class UserName(Struct):
    name: str = field(STRING, "0+")


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible_from=0):
    """The request, version 0."""

    users: list[UserName] | None = field(Array(UserName), "0+", nullable="0+")


class CredentialInfo(Struct):
    mechanism: int = field(INT8, "0+")
    iterations: int = field(INT32, "0+")


class DescribeUserScramCredentialsResult(Struct):
    user: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo), "0+")


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(Array(DescribeUserScramCredentialsResult), "0+")
