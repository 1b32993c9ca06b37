"""The levels of features: what nobody set, what was set, what this version of kwire does not know."""

from __future__ import annotations

import pytest

from kwire.metadata.changes import FeatureLevelsChanged, apply
from kwire.metadata.features import FEATURES, group_version, transaction_version
from kwire.metadata.image import MetadataImage
from kwire.metadata.text import image_from_json, image_to_json


def test_levels_that_nobody_set_are_the_newest() -> None:
    assert (group_version(MetadataImage()), transaction_version(MetadataImage())) == (1, 2)
    assert all(feature.least <= feature.initial <= feature.greatest for feature in FEATURES.values())


def test_levels_are_set_one_by_one() -> None:
    image = apply(MetadataImage(), [FeatureLevelsChanged({"transaction.version": 0})])
    assert (group_version(image), transaction_version(image)) == (1, 0)
    image = apply(image, [FeatureLevelsChanged({"group.version": 0})])
    assert (group_version(image), transaction_version(image)) == (0, 0)


def test_an_image_written_before_there_were_features() -> None:
    written = image_to_json(MetadataImage(cluster_id="c"))
    del written["features"]
    assert image_from_json(written) == MetadataImage(cluster_id="c")


@pytest.mark.parametrize("features", [{"transaction.version": 3}, {"group.version": -1}, {"kraft.version": 1}], ids=str)
def test_an_image_with_levels_to_come_is_not_read(features: dict[str, int]) -> None:
    written = image_to_json(MetadataImage()) | {"features": features}
    with pytest.raises(ValueError, match="is none of this version of kwire"):
        image_from_json(written)
