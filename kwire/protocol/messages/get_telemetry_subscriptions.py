"""GetTelemetrySubscriptions (API key 71): tells a client which of its metrics to push."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, UUID, Array


class GetTelemetrySubscriptionsRequest(Message, api_key=71, versions="0", flexible_from=0):
    """The request, version 0."""

    client_instance_id: bytes = field(UUID, "0+")


class GetTelemetrySubscriptionsResponse(Message, api_key=71, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    client_instance_id: bytes = field(UUID, "0+")
    subscription_id: int = field(INT32, "0+")
    accepted_compression_types: list[int] = field(Array(INT8), "0+")
    push_interval_ms: int = field(INT32, "0+")
    telemetry_max_bytes: int = field(INT32, "0+")
    delta_temporality: bool = field(BOOL, "0+")
    requested_metrics: list[str] = field(Array(STRING), "0+")
