"""ProducerIdsRecord (15): a broker got a block of producer ids (KIP-730)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT32, INT64


class ProducerIdsRecord(Message, api_key=15, versions="0", flexible_from=0):
    """All ids below `next_producer_id` belong to blocks that were handed out."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    next_producer_id: int = field(INT64, "0+")
