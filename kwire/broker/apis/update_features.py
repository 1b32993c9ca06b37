"""UpdateFeatures (key 57): raises or lowers the finalized levels of features, all or none (KIP-584).

v1 brought the type of the upgrade, for which v0's allow_downgrade counts nothing; v2 has no results for each feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.features import FeatureUpdate
from kwire.protocol.errors import UNAUTHORIZED, ErrorCode, KafkaError
from kwire.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not context.session.allows(Operation.ALTER, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise KafkaError(code, UNAUTHORIZED[code])
    updates = [
        FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
        for update in request.feature_updates
    ]
    await broker.controller.update_features(updates, validate_only=request.validate_only)
    return UpdateFeaturesResponse(
        error_message=None,
        # Apache Kafka names the error of a success, "NONE".
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name)
            for update in request.feature_updates
        ],
    )


def failed(request: UpdateFeaturesRequest, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
