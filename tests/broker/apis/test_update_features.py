"""UpdateFeatures: levels change for all to see, all or none, and stay over a restart."""

from __future__ import annotations

import pytest

from kwire.metadata.features import group_version, transaction_version
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene, running

UPGRADE, SAFE = 1, 2


def asked(*updates: tuple[str, int, int], validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level, upgrade_type in updates
        ],
        validate_only=validate_only,
    )


def levels(scene: Scene) -> tuple[int, int]:
    image = scene.broker.store.image
    return group_version(image), transaction_version(image)


@pytest.mark.parametrize("version", [1, 2])
async def test_levels_change_all_or_none(version: int, autojump_clock) -> None:
    async with running() as scene:
        down = asked(("transaction.version", 1, SAFE), ("group.version", 0, SAFE))
        response = await scene.call(down, version)
        told = [(each.feature, each.error_code, each.error_message) for each in response.results]
        assert (response.error_code, response.error_message) == (0, None)
        each_one = [("transaction.version", 0, "NONE"), ("group.version", 0, "NONE")]
        assert told == (each_one if version < 2 else [])
        assert levels(scene) == (0, 1)
        response = await scene.call(asked(("group.version", 1, UPGRADE), ("transaction.version", 3, UPGRADE)), version)
        assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert response.error_message.endswith(
            "Invalid update version 3 for feature transaction.version. Local controller 1 only supports versions 0-2"
        )
        assert (response.results, levels(scene)) == ([], (0, 1))


async def test_version_0_upgrades_only(autojump_clock) -> None:
    """Its allow_downgrade counts nothing (as with Apache Kafka since 4.0)."""
    async with running() as scene:
        request = UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=0, allow_downgrade=True)]
        )
        assert (await scene.call(request, 0)).error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert levels(scene) == (1, 2)


async def test_only_validated_nothing_changes(autojump_clock) -> None:
    async with running() as scene:
        before = scene.broker.store.image
        assert (await scene.call(asked(("group.version", 0, SAFE), validate_only=True))).error_code == 0
        assert scene.broker.store.image is before


async def test_levels_stay_over_a_restart(autojump_clock) -> None:
    files = MemoryFileSystem()
    async with running(files=files) as scene:
        assert (await scene.call(asked(("transaction.version", 0, SAFE)))).error_code == 0
    async with running(files=files) as scene:
        assert levels(scene) == (1, 0)


async def test_who_may_not_alter_the_cluster(autojump_clock) -> None:
    async with running() as scene:
        await scene.allow(Operation.DESCRIBE, Operation.ALTER_CONFIGS)
        response = await scene.call(asked(("group.version", 0, SAFE)))
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert response.error_message == "Cluster authorization failed."
        assert levels(scene) == (1, 2)
        await scene.allow(Operation.ALTER)
        assert (await scene.call(asked(("group.version", 0, SAFE)))).error_code == 0
        assert levels(scene) == (0, 2)
