"""UserScramCredentialRecord (11) and RemoveUserScramCredentialRecord (22): what SCRAM checks passwords by (KIP-554)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BYTES, INT8, INT32, STRING, Buffer


class UserScramCredentialRecord(Message, api_key=11, versions="0", flexible_from=0):
    """Mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")
    salt: Buffer = field(BYTES, "0+")
    stored_key: Buffer = field(BYTES, "0+")
    server_key: Buffer = field(BYTES, "0+")
    iterations: int = field(INT32, "0+")


class RemoveUserScramCredentialRecord(Message, api_key=22, versions="0", flexible_from=0):
    """A user has no credential of that mechanism any more."""

    name: str = field(STRING, "0+")
    mechanism: int = field(INT8, "0+")
