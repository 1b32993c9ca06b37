"""ApiVersions (key 18): which APIs and versions this broker offers, straight from the registry.

v3 brought the client's software name and version (KIP-511) and the features (KIP-584); v4 lets features start at 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.registry import Api

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
    return ApiVersionsResponse(api_keys=[_listed(api) for api in broker.registry.apis])


def failed(request: ApiVersionsRequest | None, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


def _listed(api: Api) -> ApiVersion:
    least = api.least if api.listed_from is None else api.listed_from
    return ApiVersion(api_key=api.key, min_version=least, max_version=api.greatest)
