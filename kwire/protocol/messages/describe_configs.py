"""DescribeConfigs (API key 32): tells the configs of topics, brokers and other resources."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


class DescribeConfigsResource(Struct):
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configuration_keys: list[str] | None = field(Array(STRING), "0+", nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible_from=4):
    """The request, versions 1 to 4."""

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(BOOL, "1+")
    include_documentation: bool = field(BOOL, "3+")


class DescribeConfigsSynonym(Struct):
    name: str = field(STRING, "1+")
    value: str | None = field(STRING, "1+", nullable="0+")
    source: int = field(INT8, "1+")


class DescribeConfigsResourceResult(Struct):
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")
    read_only: bool = field(BOOL, "0+")
    config_source: int = field(INT8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL, "0+")
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym), "1+", ignorable=True)
    config_type: int = field(INT8, "3+", ignorable=True)
    documentation: str | None = field(STRING, "3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult), "0+")


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible_from=4):
    """The response, versions 1 to 4."""

    throttle_time_ms: int = field(INT32, "0+")
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult), "0+")
