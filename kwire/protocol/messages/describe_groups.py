"""DescribeGroups (API key 15): tells the state and the members of classic groups."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, BYTES, INT16, INT32, STRING, Array, Buffer


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible_from=5):
    """The request, versions 0 to 6."""

    groups: list[str] = field(Array(STRING), "0+")
    include_authorized_operations: bool = field(BOOL, "3+")


class DescribedGroupMember(Struct):
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    member_metadata: Buffer = field(BYTES, "0+")
    member_assignment: Buffer = field(BYTES, "0+")


class DescribedGroup(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "6+", nullable="6+", default=None)
    group_id: str = field(STRING, "0+")
    group_state: str = field(STRING, "0+")
    protocol_type: str = field(STRING, "0+")
    protocol_data: str = field(STRING, "0+")
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember), "0+")
    authorized_operations: int = field(INT32, "3+", default=-0x80000000)


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible_from=5):
    """The response, versions 0 to 6."""

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")
