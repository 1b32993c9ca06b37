"""WriteTxnMarkers (API key 27): writes the commit and abort markers of transactions, from broker to broker."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, INT64, STRING, Array


class WritableTxnMarkerTopic(Struct):
    name: str = field(STRING, "0+")
    partition_indexes: list[int] = field(Array(INT32), "0+")


class WritableTxnMarker(Struct):
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    transaction_result: bool = field(BOOL, "0+")
    topics: list[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic), "0+")
    coordinator_epoch: int = field(INT32, "0+")
    transaction_version: int = field(INT8, "2+", ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible_from=1):
    """The request, versions 1 to 2."""

    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker), "0+")


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(STRING, "0+")
    partitions: list[WritableTxnMarkerPartitionResult] = field(Array(WritableTxnMarkerPartitionResult), "0+")


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(INT64, "0+")
    topics: list[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult), "0+")


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible_from=1):
    """The response, versions 1 to 2."""

    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult), "0+")
