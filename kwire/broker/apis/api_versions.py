"""ApiVersions (key 18): which APIs and versions this broker offers, straight from the registry.

v3 brought the client's software name and version (KIP-511) and the features (KIP-584): those that this broker supports,
and the levels of the cluster, but 0. Features whose least level is 0 are shown from v4 on, as clients before refuse it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from kwire.metadata.features import FEATURES, finalized_level
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.registry import Api, Registry

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")


async def handle(broker: Broker, context: RequestContext, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """Without a request (one of an unknown version): UNSUPPORTED_VERSION and the versions of ApiVersions itself."""
    if request is None:
        own = [_listed(api) for api in broker.registry.apis if api.key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
    if context.api_version >= 3 and not (
        _SOFTWARE.match(request.client_software_name) and _SOFTWARE.match(request.client_software_version)
    ):
        return failed(request, KafkaError(ErrorCode.INVALID_REQUEST))
    image = broker.store.image
    return ApiVersionsResponse(
        api_keys=_all_listed(broker.registry),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=feature.least, max_version=feature.greatest)
            for name, feature in FEATURES.items()
            if feature.least > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=image.version,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name in FEATURES
            if (level := finalized_level(image, name)) > 0
        ],
    )


def failed(request: ApiVersionsRequest | None, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


@lru_cache(maxsize=1)
def _all_listed(registry: Registry) -> list[ApiVersion]:
    """Made once: every connection begins with this question. The list is not to be changed."""
    return [_listed(api) for api in registry.apis]


def _listed(api: Api) -> ApiVersion:
    least = api.least if api.listed_from is None else api.listed_from
    return ApiVersion(api_key=api.key, min_version=least, max_version=api.greatest)
