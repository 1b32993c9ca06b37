"""The features whose levels a cluster agrees on (KIP-584, KIP-1022): those that something in kwire goes by.

Apache Kafka's others are not here: metadata.version and kraft.version are levels of KRaft's own log, which kwire does
not have; streams.version, share.version and eligible.leader.replicas.version switch on what kwire does not do yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.metadata.image import MetadataImage

GROUP_VERSION = "group.version"
"""0: groups of the classic protocol alone; 1: the consumer protocol too (KIP-848)."""

TRANSACTION_VERSION = "transaction.version"
"""0: as ever; 1: transaction records with tagged fields; 2: a new producer epoch with each transaction (KIP-890)."""


class Feature(NamedTuple):
    """The levels that this version of kwire knows (both inclusive), and the level where nobody has set one."""

    least: int
    greatest: int
    initial: int


FEATURES: Mapping[str, Feature] = {
    GROUP_VERSION: Feature(0, 1, 1),
    TRANSACTION_VERSION: Feature(0, 2, 2),
}
"""By name."""


def check_levels(levels: Mapping[str, int]) -> None:
    """Raises ValueError for levels that this version of kwire cannot work at."""
    for name, level in levels.items():
        feature = FEATURES.get(name)
        if feature is None or not feature.least <= level <= feature.greatest:
            raise ValueError(f"feature {name} at level {level} is none of this version of kwire")


def finalized_level(image: MetadataImage, name: str) -> int:
    """The level that the cluster works at."""
    return image.features.get(name, FEATURES[name].initial)


def group_version(image: MetadataImage) -> int:
    """The finalized level of group.version."""
    return finalized_level(image, GROUP_VERSION)


def transaction_version(image: MetadataImage) -> int:
    """The finalized level of transaction.version."""
    return finalized_level(image, TRANSACTION_VERSION)
