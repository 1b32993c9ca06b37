"""JoinGroup (API key 11): makes a consumer a member of a classic group and starts a rebalance."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, BYTES, INT16, INT32, STRING, Array, Buffer


class JoinGroupRequestProtocol(Struct):
    name: str = field(STRING, "0+")
    metadata: Buffer = field(BYTES, "0+")


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible_from=6):
    """The request, versions 0 to 9."""

    group_id: str = field(STRING, "0+")
    session_timeout_ms: int = field(INT32, "0+")
    rebalance_timeout_ms: int = field(INT32, "1+", default=-1, ignorable=True)
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None)
    protocol_type: str = field(STRING, "0+")
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol), "0+")
    reason: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    metadata: Buffer = field(BYTES, "0+")


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible_from=6):
    """The response, versions 0 to 9."""

    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    error_code: int = field(INT16, "0+")
    generation_id: int = field(INT32, "0+", default=-1)
    protocol_type: str | None = field(STRING, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "0+", nullable="7+")
    leader: str = field(STRING, "0+")
    skip_assignment: bool = field(BOOL, "9+")
    member_id: str = field(STRING, "0+")
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember), "0+")
