"""ClientQuotaRecord (14): a quota of users, clients or addresses, set or removed (KIP-546)."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, FLOAT64, STRING, Array


class EntityData(Struct):
    entity_type: str = field(STRING, "0+")
    entity_name: str | None = field(STRING, "0+", nullable="0+")


class ClientQuotaRecord(Message, api_key=14, versions="0", flexible_from=0):
    """One quota of an entity; an entity's name of null is the default of its type."""

    entity: list[EntityData] = field(Array(EntityData), "0+")
    key: str = field(STRING, "0+")
    value: float = field(FLOAT64, "0+")
    remove: bool = field(BOOL, "0+")
