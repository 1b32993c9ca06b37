"""UpdateFeatures (API key 57): raises or lowers the finalized features of the cluster."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT8, INT16, INT32, STRING, Array


class FeatureUpdateKey(Struct):
    feature: str = field(STRING, "0+")
    max_version_level: int = field(INT16, "0+")
    allow_downgrade: bool = field(BOOL, "0")
    upgrade_type: int = field(INT8, "1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible_from=0):
    """The request, versions 0 to 2."""

    timeout_ms: int = field(INT32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey), "0+")
    validate_only: bool = field(BOOL, "1+")


class UpdatableFeatureResult(Struct):
    feature: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible_from=0):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), "0-1", ignorable=True)
