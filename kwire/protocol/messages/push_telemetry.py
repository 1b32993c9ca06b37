"""PushTelemetry (API key 72): carries metrics of a client."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BOOL, BYTES, INT8, INT16, INT32, UUID, Buffer


class PushTelemetryRequest(Message, api_key=72, versions="0", flexible_from=0):
    """The request, version 0."""

    client_instance_id: bytes = field(UUID, "0+")
    subscription_id: int = field(INT32, "0+")
    terminating: bool = field(BOOL, "0+")
    compression_type: int = field(INT8, "0+")
    metrics: Buffer = field(BYTES, "0+")


class PushTelemetryResponse(Message, api_key=72, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
