"""SyncGroup (API key 14): hands each member of a classic group its assignment, which the leader brings."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT16, INT32, STRING, Array, Buffer


class SyncGroupRequestAssignment(Struct):
    member_id: str = field(STRING, "0+")
    assignment: Buffer = field(BYTES, "0+")


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible_from=4):
    """The request, versions 0 to 5."""

    group_id: str = field(STRING, "0+")
    generation_id: int = field(INT32, "0+")
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment), "0+")


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible_from=4):
    """The response, versions 0 to 5."""

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignment: Buffer = field(BYTES, "0+")
