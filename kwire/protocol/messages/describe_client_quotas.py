"""DescribeClientQuotas (API key 48): lists the quotas of the clients that match a filter."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, FLOAT64, INT8, INT16, INT32, STRING, Array


class ComponentData(Struct):
    entity_type: str = field(STRING, "0+")
    match_type: int = field(INT8, "0+")
    match: str | None = field(STRING, "0+", nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible_from=1):
    """The request, versions 0 to 1."""

    components: list[ComponentData] = field(Array(ComponentData), "0+")
    strict: bool = field(BOOL, "0+")


class EntityData(Struct):
    entity_type: str = field(STRING, "0+")
    entity_name: str | None = field(STRING, "0+", nullable="0+")


class ValueData(Struct):
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")


class EntryData(Struct):
    entity: list[EntityData] = field(Array(EntityData), "0+")
    values: list[ValueData] = field(Array(ValueData), "0+")


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible_from=1):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    entries: list[EntryData] | None = field(Array(EntryData), "0+", nullable="0+")
