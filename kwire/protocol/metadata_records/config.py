"""ConfigRecord (4): one config of a topic, a broker, a group, or a client metrics subscription, set or removed."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT8, STRING


class ConfigRecord(Message, api_key=4, versions="0", flexible_from=0):
    """`resource_type` is that of AlterConfigs; a broker's name is its id, "" all brokers. No value: removed."""

    resource_type: int = field(INT8, "0+")
    resource_name: str = field(STRING, "0+")
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")
