"""Which changes of feature levels are taken, and with which words others are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.cluster.features import FeatureUpdate, update_features
from kwire.metadata.changes import FeatureLevelsChanged, apply
from kwire.metadata.features import FEATURES, finalized_level
from kwire.metadata.image import MetadataImage
from kwire.protocol.errors import ErrorCode, KafkaError

NEWEST = MetadataImage(controller_id=7)
OLDEST = MetadataImage(controller_id=7, features={"group.version": 0, "transaction.version": 0})
UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.mark.parametrize(
    ("image", "updates", "levels"),
    [
        (NEWEST, [], None),
        (NEWEST, [("group.version", 1, UPGRADE)], None),
        (NEWEST, [("group.version", 1, SAFE)], None),
        (NEWEST, [("group.version", 0, SAFE)], {"group.version": 0}),
        (NEWEST, [("transaction.version", 1, UNSAFE)], {"transaction.version": 1}),
        (OLDEST, [("transaction.version", 2, UPGRADE)], {"transaction.version": 2}),
        (
            OLDEST,
            [("transaction.version", 1, UPGRADE), ("group.version", 1, UPGRADE)],
            {"transaction.version": 1, "group.version": 1},
        ),
        (NEWEST, [("group.version", 9, UPGRADE), ("group.version", 0, SAFE)], {"group.version": 0}),
        (NEWEST, [("group.version", 0, SAFE), ("group.version", 1, UPGRADE)], None),
    ],
)
def test_what_is_taken(
    image: MetadataImage, updates: list[tuple[str, int, int]], levels: dict[str, int] | None
) -> None:
    change = update_features(image, [FeatureUpdate(*update) for update in updates])
    assert change == (None if levels is None else FeatureLevelsChanged(levels))


@pytest.mark.parametrize(
    ("image", "update", "reason"),
    [
        (NEWEST, ("nonsense", 1, UPGRADE), "Local controller 7 does not support this feature."),
        (NEWEST, ("nonsense", 0, SAFE), "Feature nonsense not found."),
        (NEWEST, ("nonsense", -1, UPGRADE), "A feature version cannot be less than 0."),
        (NEWEST, ("group.version", 2, UPGRADE), "Local controller 7 only supports versions 0-1"),
        (NEWEST, ("transaction.version", 99, UNSAFE), "Local controller 7 only supports versions 0-2"),
        (
            NEWEST,
            ("group.version", 0, UPGRADE),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade.",
        ),
        (OLDEST, ("group.version", 1, SAFE), "Can't downgrade to a newer version."),
        (NEWEST, ("group.version", -1, 0), "The controller does not support the given upgrade type."),
        (NEWEST, ("group.version", 1, 4), "The controller does not support the given upgrade type."),
    ],
)
def test_what_is_not(image: MetadataImage, update: tuple[str, int, int], reason: str) -> None:
    """One such update keeps all others from being made."""
    name, level, _ = update
    with pytest.raises(KafkaError) as caught:
        update_features(image, [FeatureUpdate("transaction.version", 2, UPGRADE), FeatureUpdate(*update)])
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert caught.value.message == (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature {name}. {reason}"
    )


UPDATES = st.builds(
    FeatureUpdate, st.sampled_from([*FEATURES, "nonsense"]), st.integers(-1, 3), st.sampled_from([0, 1, 2, 3])
)


@given(st.lists(st.lists(UPDATES, max_size=3), max_size=6))
def test_any_updates_leave_levels_that_exist(history: list[list[FeatureUpdate]]) -> None:
    image = MetadataImage()
    for updates in history:
        try:
            change = update_features(image, updates)
        except KafkaError:
            continue
        image = apply(image, [] if change is None else [change])
        for update in updates[-1:]:
            assert finalized_level(image, update.name) == update.level
