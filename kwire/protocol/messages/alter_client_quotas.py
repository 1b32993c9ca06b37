"""AlterClientQuotas (API key 49): sets and removes quotas of clients."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, FLOAT64, INT16, INT32, STRING, Array


class EntityData(Struct):
    entity_type: str = field(STRING, "0+")
    entity_name: str | None = field(STRING, "0+", nullable="0+")


class OpData(Struct):
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")
    remove: bool = field(BOOL, "0+")


class EntryData(Struct):
    entity: list[EntityData] = field(Array(EntityData), "0+")
    ops: list[OpData] = field(Array(OpData), "0+")


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible_from=1):
    """The request, versions 0 to 1."""

    entries: list[EntryData] = field(Array(EntryData), "0+")
    validate_only: bool = field(BOOL, "0+")


class ResponseEntryData(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    entity: list[EntityData] = field(Array(EntityData), "0+")


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible_from=1):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    entries: list[ResponseEntryData] = field(Array(ResponseEntryData), "0+")
