"""Heartbeat (API key 12): keeps a member of a classic group alive."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, INT32, STRING


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible_from=4):
    """The request, versions 0 to 4."""

    group_id: str = field(STRING, "0+")
    generation_id: int = field(INT32, "0+")
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible_from=4):
    """The response, versions 0 to 4."""

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
