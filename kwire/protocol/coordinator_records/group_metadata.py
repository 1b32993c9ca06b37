"""GroupMetadata (record type 2): a classic group's generation, its members and what each was assigned."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT32, INT64, STRING, Array, Buffer


class GroupMetadataKey(Message, api_key=2, versions="0"):
    """The key."""

    group: str = field(STRING, "0")


class MemberMetadata(Struct):
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    rebalance_timeout: int = field(INT32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(INT32, "0+")
    subscription: Buffer = field(BYTES, "0+")
    assignment: Buffer = field(BYTES, "0+")


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible_from=4):
    """The value, versions 0 to 4."""

    protocol_type: str = field(STRING, "0+")
    generation: int = field(INT32, "0+")
    protocol: str | None = field(STRING, "0+", nullable="0+")
    leader: str | None = field(STRING, "0+", nullable="0+")
    current_state_timestamp: int = field(INT64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(Array(MemberMetadata), "0+")
