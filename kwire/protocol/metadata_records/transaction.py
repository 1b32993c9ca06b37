"""BeginTransactionRecord (23), EndTransactionRecord (24) and AbortTransactionRecord (25) (KIP-868).

The records between the first and one of the others count with the end, or not at all.
"""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import STRING


class BeginTransactionRecord(Message, api_key=23, versions="0", flexible_from=0):
    """What follows waits for its end."""

    name: str | None = field(STRING, "0+", nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message, api_key=24, versions="0", flexible_from=0):
    """All since the beginning counts."""


class AbortTransactionRecord(Message, api_key=25, versions="0", flexible_from=0):
    """Nothing since the beginning counts."""

    reason: str | None = field(STRING, "0+", nullable="0+", default=None, tag=0)
