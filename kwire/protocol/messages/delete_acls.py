"""DeleteAcls (API key 31): removes the access rules that match filters."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class DeleteAclsFilter(Struct):
    resource_type_filter: int = field(INT8, "0+")
    resource_name_filter: str | None = field(STRING, "0+", nullable="0+")
    pattern_type_filter: int = field(INT8, "1+", default=3)
    principal_filter: str | None = field(STRING, "0+", nullable="0+")
    host_filter: str | None = field(STRING, "0+", nullable="0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class DeleteAclsRequest(Message, api_key=31, versions="1-3", flexible_from=2):
    """The request, versions 1 to 3."""

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter), "0+")


class DeleteAclsMatchingAcl(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "1+", default=3)
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class DeleteAclsFilterResult(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = field(Array(DeleteAclsMatchingAcl), "0+")


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible_from=2):
    """The response, versions 1 to 3."""

    throttle_time_ms: int = field(INT32, "0+")
    filter_results: list[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult), "0+")
