"""AlterConfigs (API key 33): replaces all configs of resources."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


class AlterableConfig(Struct):
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")


class AlterConfigsResource(Struct):
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configs: list[AlterableConfig] = field(Array(AlterableConfig), "0+")


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible_from=2):
    """The request, versions 0 to 2."""

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource), "0+")
    validate_only: bool = field(BOOL, "0+")


class AlterConfigsResourceResponse(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible_from=2):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse), "0+")
