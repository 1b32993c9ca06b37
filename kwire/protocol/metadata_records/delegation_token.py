"""DelegationTokenRecord (10) and RemoveDelegationTokenRecord (26): tokens that stand for a principal (KIP-900)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT64, STRING, Array


class DelegationTokenRecord(Message, api_key=10, versions="0", flexible_from=0):
    """A token, made or renewed. Times are ms since the epoch."""

    owner: str = field(STRING, "0+")
    requester: str = field(STRING, "0+")
    renewers: list[str] = field(Array(STRING), "0+")
    issue_timestamp: int = field(INT64, "0+")
    max_timestamp: int = field(INT64, "0+")
    expiration_timestamp: int = field(INT64, "0+")
    token_id: str = field(STRING, "0+")


class RemoveDelegationTokenRecord(Message, api_key=26, versions="0", flexible_from=0):
    """The token of that id is gone."""

    token_id: str = field(STRING, "0+")
