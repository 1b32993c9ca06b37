"""FeatureLevelRecord (12): the level at which the cluster works with a feature (KIP-584)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT16, STRING


class FeatureLevelRecord(Message, api_key=12, versions="0", flexible_from=0):
    """Level 0 is that of a feature that nobody ever set."""

    name: str = field(STRING, "0+")
    feature_level: int = field(INT16, "0+")
