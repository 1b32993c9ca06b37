"""DeleteGroups (API key 42): deletes empty groups."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, Array


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible_from=2):
    """The request, versions 0 to 2."""

    groups_names: list[str] = field(Array(STRING), "0+")


class DeletableGroupResult(Struct):
    group_id: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible_from=2):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult), "0+")
