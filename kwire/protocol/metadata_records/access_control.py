"""AccessControlEntryRecord (18) and RemoveAccessControlEntryRecord (19): who may do what (KIP-801)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT8, STRING, UUID


class AccessControlEntryRecord(Message, api_key=18, versions="0", flexible_from=0):
    """One entry; the numbers are those of CreateAcls."""

    id: bytes = field(UUID, "0+")
    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    pattern_type: int = field(INT8, "0+")
    principal: str = field(STRING, "0+")
    host: str = field(STRING, "0+")
    operation: int = field(INT8, "0+")
    permission_type: int = field(INT8, "0+")


class RemoveAccessControlEntryRecord(Message, api_key=19, versions="0", flexible_from=0):
    """The entry of that id is gone."""

    id: bytes = field(UUID, "0+")
