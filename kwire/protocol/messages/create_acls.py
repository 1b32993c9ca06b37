"""CreateAcls (API key 30): adds access rules."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class AclCreation(Struct):
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    resource_pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible_from=2):
    """The request, versions 1 to 3."""

    creations: list[AclCreation] = field(Array(AclCreation), "0+")


class AclCreationResult(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible_from=2):
    """The response, versions 1 to 3."""

    throttle_time_ms: int = field(INT32, "0+")
    results: list[AclCreationResult] = field(Array(AclCreationResult), "0+")
