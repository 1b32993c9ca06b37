"""Changing the finalized levels of features: what UpdateFeatures asks for turned into a change of the metadata.

Pure, as `kwire.cluster.topics`. Validation, its order and its messages are those of Apache Kafka 4.3.1's controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kwire.metadata.changes import FeatureLevelsChanged
from kwire.metadata.features import FEATURES, finalized_level
from kwire.metadata.image import MetadataImage
from kwire.protocol.errors import ErrorCode, KafkaError


class UpgradeType(IntEnum):
    """Which way a level may change; the numbers are those of UpdateFeatures. Nothing here is lost by a downgrade."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A level to set. `upgrade_type` as on the wire."""

    name: str
    level: int
    upgrade_type: int


def update_features(image: MetadataImage, updates: Sequence[FeatureUpdate]) -> FeatureLevelsChanged | None:
    """The change, None where every level is what it was. Of updates of one feature the last counts.

    Raises INVALID_UPDATE_VERSION for the first that must not be: then nothing changes.
    """
    last = {update.name: update for update in updates}
    for update in last.values():
        reason = _refusal(image, update)
        if reason is not None:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.level} for feature {update.name}. {reason}",
            )
    levels = {name: update.level for name, update in last.items() if update.level != finalized_level(image, name)}
    return FeatureLevelsChanged(levels) if levels else None


def _refusal(image: MetadataImage, update: FeatureUpdate) -> str | None:
    if update.upgrade_type not in UpgradeType._value2member_map_:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    feature = FEATURES.get(update.name)
    if feature is None:
        if update.level == 0:
            return f"Feature {update.name} not found."
        return f"Local controller {image.controller_id} does not support this feature."
    if not feature.least <= update.level <= feature.greatest:
        return f"Local controller {image.controller_id} only supports versions {feature.least}-{feature.greatest}"
    current = finalized_level(image, update.name)
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None
