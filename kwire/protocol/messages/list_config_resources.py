"""ListConfigResources (API key 74): lists the resources that have configs."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    resource_types: list[int] = field(Array(INT8), "1+")


class ConfigResource(Struct):
    resource_name: str = field(STRING, "0+")
    resource_type: int = field(INT8, "1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    config_resources: list[ConfigResource] = field(Array(ConfigResource), "0+")
