"""UpdateFeatures, and the levels that ApiVersions tells afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.api_versions import ApiVersionsRequest
from kwire.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

pytestmark = pytest.mark.xdist_group("oracle")

GROUP, TRANSACTION = "group.version", "transaction.version"
UNKNOWN, UPGRADE, SAFE, UNSAFE = range(4)
VERSIONS = (0, 1, 2)
OTHERS = "features of Apache Kafka alone"

Update = tuple[str, int, int]
"""(feature, level, upgrade type)"""


def asked(*updates: Update, validate_only: bool = False, version: int = 2) -> UpdateFeaturesRequest:
    keys = []
    for feature, level, upgrade_type in updates:
        key = FeatureUpdateKey(feature=feature, max_version_level=level)
        if version:
            key.upgrade_type = upgrade_type
        keys.append(key)
    return UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)


def shows(side: Side, **levels: int) -> None:
    """Records the finalized levels, as soon as they are these (names without `.version`)."""

    def done(response: Any) -> bool:
        told = {each.name: each.max_version_level for each in response.finalized_features}
        return all(told.get(f"{name}.version", 0) == level for name, level in levels.items())

    request = ApiVersionsRequest(client_software_name="oracle", client_software_version="1")
    response = side.call(request, until=done)
    told = [each for each in response.finalized_features if each.name in (GROUP, TRANSACTION)]
    side.record(f"levels {levels}", {each.name: (each.min_version_level, each.max_version_level) for each in told})


def test_levels_down_and_up(both: Both) -> None:
    def scenario(side: Side) -> None:
        steps: list[tuple[list[Update], dict[str, int]]] = [
            ([(GROUP, 0, SAFE)], {"group": 0, "transaction": 2}),
            ([(GROUP, 0, UNSAFE)], {"group": 0, "transaction": 2}),
            ([(TRANSACTION, 1, UNSAFE), (GROUP, 1, UPGRADE)], {"group": 1, "transaction": 1}),
            ([(GROUP, 1, UPGRADE), (GROUP, 0, SAFE)], {"group": 0, "transaction": 1}),
            ([(GROUP, 0, SAFE), (GROUP, 1, UPGRADE)], {"group": 1, "transaction": 1}),
            ([(TRANSACTION, 0, SAFE)], {"group": 1, "transaction": 0}),
            ([(TRANSACTION, 2, UPGRADE)], {"group": 1, "transaction": 2}),
        ]
        for version in (1, 2):
            for updates, levels in steps:
                side.ask(asked(*updates, validate_only=True), version, note=f"validate {updates}")
                side.ask(asked(*updates), version, note=f"{updates}")
                shows(side, **levels)

    both.agree(scenario)


REFUSED: list[list[Update]] = [
    [],
    [("nonsense", 1, UPGRADE)],
    [("nonsense", 0, SAFE)],
    [("nonsense", -1, UPGRADE)],
    [("", 0, UPGRADE)],
    [("", 1, UPGRADE)],
    [(GROUP, -1, UPGRADE)],
    [(GROUP, -1, UNKNOWN)],
    [(GROUP, 2, UPGRADE)],
    [(GROUP, 32767, UNSAFE)],
    [(TRANSACTION, 3, UPGRADE)],
    [(GROUP, 0, UPGRADE)],
    [(GROUP, 0, UNKNOWN)],
    [(GROUP, 0, 4)],
    [(GROUP, 1, -1)],
    [(GROUP, 1, UPGRADE)],
    [(GROUP, 1, SAFE)],
    [(GROUP, 0, SAFE), (TRANSACTION, 5, UPGRADE)],
    [(TRANSACTION, 2, UNSAFE), (GROUP, 0, UPGRADE)],
]


def test_what_changes_nothing(both: Both) -> None:
    def scenario(side: Side) -> None:
        for version in VERSIONS:
            for updates in REFUSED:
                side.ask(asked(*updates, version=version), version, note=f"{updates}")
                shows(side, group=1, transaction=2)

    both.agree(scenario)


def test_an_upgrade_only_what_was_down(both: Both) -> None:
    def scenario(side: Side) -> None:
        side.ask(asked((GROUP, 0, SAFE)))
        shows(side, group=0)
        side.ask(asked((GROUP, 1, SAFE)), note="up by a downgrade")
        side.ask(asked((GROUP, 1, UPGRADE), version=0), 0)
        shows(side, group=1)

    both.agree(scenario)


def test_features_that_kwire_does_not_have(both: Both) -> None:
    def scenario(side: Side) -> None:
        for name, level in (
            ("metadata.version", 30),
            ("kraft.version", 1),
            ("streams.version", 1),
            ("share.version", 1),
            ("eligible.leader.replicas.version", 1),
        ):
            side.ask(asked((name, level, UPGRADE)), note=name)

    both.agree(scenario, OTHERS)
