"""LeaveGroup (API key 13): removes members from a classic group."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, Array


class MemberIdentity(Struct):
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    reason: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible_from=4):
    """The request, versions 0 to 5."""

    group_id: str = field(STRING, "0+")
    member_id: str = field(STRING, "0-2")
    members: list[MemberIdentity] = field(Array(MemberIdentity), "3+")


class MemberResponse(Struct):
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+")
    error_code: int = field(INT16, "3+")


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible_from=4):
    """The response, versions 0 to 5."""

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
    members: list[MemberResponse] = field(Array(MemberResponse), "3+")
