"""AlterUserScramCredentials (API key 51): sets and deletes SCRAM credentials of users."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT8, INT16, INT32, STRING, Array, Buffer


class ScramCredentialDeletion(Struct):
    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")


class ScramCredentialUpsertion(Struct):
    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")
    iterations: int = field(INT32, "0+")
    salt: Buffer = field(BYTES, "0+")
    salted_password: Buffer = field(BYTES, "0+")


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible_from=0):
    """The request, version 0."""

    deletions: list[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion), "0+")
    upsertions: list[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion), "0+")


class AlterUserScramCredentialsResult(Struct):
    user: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    results: list[AlterUserScramCredentialsResult] = field(Array(AlterUserScramCredentialsResult), "0+")
