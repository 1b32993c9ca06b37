"""DescribeAcls (API key 29): lists the access rules that match a filter."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class DescribeAclsRequest(Message, api_key=29, versions="1-3", flexible_from=2):
    """The request, versions 1 to 3."""

    resource_type_filter: int = field(INT8, "0+")
    resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, "0+", nullable="0+")
    host_filter: str | None = field(STRING, "0+", nullable="0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class AclDescription(Struct):
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class DescribeAclsResource(Struct):
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "1+", default=3)
    acls: list[AclDescription] = field(Array(AclDescription), "0+")


class DescribeAclsResponse(Message, api_key=29, versions="1-3", flexible_from=2):
    """The response, versions 1 to 3."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource), "0+")
